"""Invents the same person for the same seed."""

from faker import Faker


def person():
    fake = Faker("de_DE")
    fake.seed_instance(7)
    return fake.name(), fake.address(), fake.email()


assert person() == person()
