"""Should *you* freeze? Your data and your model, in the time that you have (`fpt advise`).

`request` says what is wanted and refuses what cannot be; `work` runs two ordinary studies, first `baselines`, the
numbers to beat, then the probe, then what `schedule` fits into the time; `studies` are their files; `verdict` reads
these, by `metrics`; `words` and `report` say it; `keep` keeps the winner. `bench` compares it with what people start
with.
"""
