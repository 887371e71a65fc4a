"""Parses and computes by a grammar."""

from lark import Lark, Transformer

grammar = """
start: sum
sum: product ("+" product)*
product: NUMBER ("*" NUMBER)*
%import common.NUMBER
%ignore " "
"""


class Compute(Transformer):
    start = sum
    sum = sum
    NUMBER = int

    def product(self, items):
        return items[0] * items[1] if len(items) > 1 else items[0]


assert Compute().transform(Lark(grammar, parser="lalr").parse("1 + 2 * 3")) == 7
