"""Answers a request of its test client, and saves an object in SQLite."""

import django
from django.conf import settings
from django.db import connection, models
from django.http import JsonResponse
from django.test import Client
from django.urls import path

database = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
settings.configure(
    ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], DATABASES={"default": database}, USE_TZ=True
)
django.setup()


class City(models.Model):
    name = models.CharField(max_length=9)

    class Meta:
        app_label = "a"


def cities(request):
    return JsonResponse({"cities": list(City.objects.values_list("name", flat=True))})


urlpatterns = [path("cities", cities)]
with connection.schema_editor() as editor:
    editor.create_model(City)
City.objects.create(name="Oslo")
assert Client().get("/cities").json() == {"cities": ["Oslo"]}
