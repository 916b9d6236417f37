import { describe, expect, it } from 'vitest';
import { ranNevertheless, runTick, TickFault, type TickSteps } from './tick.ts';

const PERIOD_SECONDS = 5;
const SLOT = 1_000;
const SLOT_MS = SLOT * PERIOD_SECONDS * 1_000;

function ticking(steps: Partial<TickSteps<string, string, string>> = {}, nowMs = SLOT_MS) {
  const done: string[] = [];
  const clock = { nowMs: () => nowMs };
  const all: TickSteps<string, string, string> = {
    controller: 'some',
    periodSeconds: PERIOD_SECONDS,
    read: () => Promise.resolve({ kind: 'work', world: 'world' }),
    claim: (world) => {
      done.push(`claim ${world}`);
      return Promise.resolve({ kind: 'claimed', claimed: `claimed ${world}` });
    },
    work: (claimed) => {
      done.push(`work on ${claimed}`);
      return Promise.resolve('report');
    },
    ...steps,
  };
  const run = (budgetMs?: number) =>
    runTick({ clock }, { slot: SLOT, ...(budgetMs === undefined ? {} : { budgetMs }) }, all);
  return {
    done,
    run,
    at: (atMs: number) => {
      nowMs = atMs;
    },
  };
}

describe('a tick', () => {
  it('reads, claims, works', async () => {
    const { run, done } = ticking();
    expect(await run()).toBe('report');
    expect(done).toEqual(['claim world', 'work on claimed world']);
  });

  it('that starts long after its slot does nothing', async () => {
    const { run, done } = ticking({}, SLOT_MS + 66_000);
    expect(await run()).toEqual({ kind: 'stale' });
    expect(done).toEqual([]);
  });

  it('without work makes no claim', async () => {
    const { run, done } = ticking({ read: () => Promise.resolve({ kind: 'done', report: 'nothing to do' }) });
    expect(await run()).toBe('nothing to do');
    expect(done).toEqual([]);
  });

  it('that loses the claim of its slot does no work', async () => {
    const { run, done } = ticking({ claim: () => Promise.resolve('lost') });
    expect(await run()).toEqual({ kind: 'lost' });
    expect(done).toEqual([]);
  });

  it('may run until shortly before the next one, or for the least share of a period when that is later', async () => {
    const hadTime: boolean[] = [];
    const some = ticking({
      work: (_, { budget }) => {
        const within = budget();
        some.at(SLOT_MS + 4_499);
        hadTime.push(within.hasTime());
        some.at(SLOT_MS + 4_500);
        hadTime.push(within.hasTime());
        const least = budget(0.25);
        some.at(SLOT_MS + 5_749);
        hadTime.push(least.hasTime());
        some.at(SLOT_MS + 5_750);
        hadTime.push(least.hasTime());
        return Promise.resolve('report');
      },
    });
    await some.run();
    expect(hadTime).toEqual([true, false, true, false]);
  });

  it('runs no longer than its caller allows', async () => {
    const hadTime: boolean[] = [];
    const some = ticking({
      work: (_, { budget }) => {
        some.at(SLOT_MS + 1_000);
        hadTime.push(budget().hasTime());
        return Promise.resolve('report');
      },
    });
    await some.run(1_000);
    expect(hadTime).toEqual([false]);
  });

  it('reports the faults of single objects together, after the work', async () => {
    const { run } = ticking({
      work: (_, { faults }) => {
        faults.push(new Error('one'), new Error('other'));
        return Promise.resolve('report');
      },
    });
    const fault = await run().catch((error: unknown) => error);
    expect(fault).toBeInstanceOf(TickFault);
    expect((fault as TickFault).errors.map((error: Error) => error.message)).toEqual(['one', 'other']);
    expect(ranNevertheless(fault)).toBe(true);
  });

  it('did not run if the work itself failed', async () => {
    const { run } = ticking({ work: () => Promise.reject(new Error('no')) });
    expect(ranNevertheless(await run().catch((error: unknown) => error))).toBe(false);
  });
});
