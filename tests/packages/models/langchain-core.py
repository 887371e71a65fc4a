"""Runs a chain of a prompt, a model of its own and a parser."""

from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

prompt = ChatPromptTemplate.from_template("What is {sum}?")
chain = prompt | FakeListChatModel(responses=["4", "5"]) | StrOutputParser()
assert chain.invoke({"sum": "2 + 2"}) == "4"
assert chain.batch([{"sum": "2 + 3"}]) == ["5"]
