"""What the engines share: how calls are timed, and how much fits into the time there is."""
import time


def timed(work):
    """The seconds that a call takes, and what it returns. If other programs hold the processor,
    elapsed time says little; then it is processor time."""
    start = clocks()
    result = work()
    return since(start), result


def clocks():
    return time.perf_counter(), time.process_time()


def since(start):
    return min(now - then for now, then in zip(clocks(), start))


def repeat(work, enough=5.0):
    """The fastest of up to five calls, none begun after `enough` seconds; how many there were; and
    the last result."""
    times = []
    while len(times) < 5 and sum(times) < enough:
        seconds, result = timed(work)
        times.append(seconds)
    return min(times), len(times), result


def one_by_one(units, work, budget):
    """`work` on each of `units` until `budget` seconds are over: the seconds that it took, and the
    results."""
    results, start = [], clocks()
    for unit in units:
        results.append(work(unit))
        if since(start) > budget:
            break
    return since(start), results


def growing(work, budget, most=1000):
    """`work(n)` for the n that about `budget` seconds are enough for, found by smaller ones: n, the
    seconds, and the result."""
    n = 2
    while True:
        seconds, result = timed(lambda: work(n))
        if seconds > budget / 2 or n >= most:
            return n, seconds, result
        n = min(most, max(2, int(budget * n / seconds)))
