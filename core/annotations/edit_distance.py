"""Edit distance of two words, for messages that suggest the correct spelling of a misspelt word."""

from __future__ import annotations


def edit_distance(word: str, other: str, limit: int) -> int:
    """Return the number of characters to insert, delete, replace or swap with their neighbour; some number above
    `limit` if there are more."""
    if abs(len(word) - len(other)) > limit:
        return limit + 1
    before: list[int] = []
    last = list(range(len(other) + 1))
    for row, letter in enumerate(word, 1):
        line = [row]
        for column, expected in enumerate(other, 1):
            cost = min(last[column] + 1, line[column - 1] + 1, last[column - 1] + (letter != expected))
            if before and column > 1 and letter == other[column - 2] and word[row - 2] == expected:
                cost = min(cost, before[column - 2] + 1)
            line.append(cost)
        before, last = last, line
    return last[-1]


def is_similar(word: str, other: str) -> bool:
    """Return whether `word` may be a misspelling of the other one: at most one edit, or two if it has six characters or
    more. Also True for equal words. A word of less than four characters is never similar."""
    if len(word) < 4:
        return False
    limit = 2 if len(word) >= 6 else 1
    return edit_distance(word, other, limit) <= limit
