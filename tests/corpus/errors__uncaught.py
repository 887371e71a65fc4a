"""Ends with an uncaught chained exception: stdout before it is kept, stderr is not empty, the exit status is 1."""
import sys


class StageFailed(Exception):
    def __init__(self, stage, done):
        super().__init__(f"stage {stage} failed after {done} items")
        self.stage, self.done = stage, done


def stage_one(items):
    for item in items:
        yield item * 2


def stage_two(items):
    for item in items:
        if item > 6:
            raise ValueError(f"{item} is too large")
        yield item + 1


def run(items):
    done = []
    try:
        for result in stage_two(stage_one(items)):
            print("result", result)
            done.append(result)
    except ValueError as error:
        print("about to fail after", done)
        failure = StageFailed("two", len(done))
        failure.add_note("the input was: " + ", ".join(map(str, items)))
        raise failure from error
    finally:
        print("finally still runs")
    return done


class Announces:
    def __enter__(self):
        print("enter")

    def __exit__(self, kind, value, traceback):
        print("exit sees", kind.__name__ if kind else None)
        return False


print("total", sum(run([1, 2, 3])))
recovered = []
for attempt in ([1, 5], [0]):
    try:
        recovered.append(run(attempt))
    except StageFailed as failure:
        recovered.append((failure.stage, failure.done, str(failure.__cause__)))
print("recovered:", recovered)
print("no newline at the end of this write", end="", flush=True)
sys.stdout.write("\n")

with Announces():
    run([1, 2, 9, 3])
print("never printed")
