# Groups objects by the field $by, and adds up their field $value.
(if type == "array" then . else [.[]? | arrays] | add end)
| map(objects)
| group_by(.[$by])
| map({
    ($by): .[0][$by],
    count: length,
    total: ([.[][$value] | numbers] | add // 0 | . * 100 | round / 100)
  })
| sort_by(-.total)
