"""Statistics of launches, the same for measurements, studies, reports and benchmarks.

A launch is one start of the ranks. Samples of one launch share its memory pages, its cores and its minute, so
they say little about the next launch: launches are the unit, samples only make each launch's figure firmer.

    intervals   95 % of one side's launches, of a ratio of two sides, of any expression of several
    variances   many pairs of sides at once: variances lent to each other, one false discovery rate
    decisions   whether a statement about a figure holds for all of its interval
    summary     the median of many samples, its interval, and which samples are outliers

NumPy and SciPy take longer to import than most commands take: functions import them when they are called.
"""
