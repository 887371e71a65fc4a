"""Routes a request and answers it."""

from werkzeug.routing import Map, Rule
from werkzeug.test import Client
from werkzeug.wrappers import Request, Response

routes = Map([Rule("/<int:n>", endpoint="number")])


@Request.application
def app(request):
    _, values = routes.bind_to_environ(request.environ).match()
    return Response(str(values["n"] + 1))


assert Client(app).get("/41").text == "42"
