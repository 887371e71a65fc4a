"""Splits a text into pieces that overlap."""

from langchain_text_splitters import RecursiveCharacterTextSplitter

pieces = RecursiveCharacterTextSplitter(chunk_size=9, chunk_overlap=2).split_text("one two three")
assert pieces == ["one two", "three"]
