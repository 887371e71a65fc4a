"""Makes objects for tests."""

import factory


class Person:
    def __init__(self, name, mail):
        self.name, self.mail = name, mail


class PersonFactory(factory.Factory):
    class Meta:
        model = Person

    name = factory.Sequence(lambda n: f"p{n}")
    mail = factory.LazyAttribute(lambda person: f"{person.name}@example.com")


assert [person.mail for person in PersonFactory.build_batch(2)][1] == "p1@example.com"
