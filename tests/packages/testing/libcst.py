"""Renames a function and keeps the comments."""

import libcst as cst


class Rename(cst.CSTTransformer):
    def leave_Name(self, original_node, updated_node):
        return updated_node.with_changes(value="b")


assert cst.parse_module("a()  # hi\n").visit(Rename()).code == "b()  # hi\n"
