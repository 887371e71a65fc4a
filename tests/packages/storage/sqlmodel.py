"""Saves an object in SQLite and finds it."""

from sqlmodel import Field, Session, SQLModel, create_engine, select


class City(SQLModel, table=True):
    id: int | None = Field(default=None, primary_key=True)
    name: str


engine = create_engine("sqlite://")
SQLModel.metadata.create_all(engine)
with Session(engine) as session:
    session.add(City(name="Oslo"))
    session.commit()
    assert session.exec(select(City).where(City.name == "Oslo")).one().id == 1
