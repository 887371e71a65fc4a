"""Maps classes to SQLite, with a join."""

from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship


class Base(DeclarativeBase):
    pass


class City(Base):
    __tablename__ = "city"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    rain: Mapped[list["Rain"]] = relationship()


class Rain(Base):
    __tablename__ = "rain"
    id: Mapped[int] = mapped_column(primary_key=True)
    city: Mapped[int] = mapped_column(ForeignKey("city.id"))
    amount: Mapped[float]


engine = create_engine("sqlite://")
Base.metadata.create_all(engine)
with Session(engine) as session:
    session.add(City(name="Oslo", rain=[Rain(amount=1.5)]))
    session.commit()
    assert session.scalars(select(City.name).join(Rain).where(Rain.amount > 1)).all() == ["Oslo"]
