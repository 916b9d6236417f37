import { expect, it } from 'vitest';
import { delayDecision, LOGIND_SHUTDOWN, logindDropIn, PRESHUTDOWN, preparingForShutdown } from './shutdown-start.ts';

it('a delay is raised, never lowered', () => {
  expect(delayDecision(30_000, 29_999)).toEqual({ kind: 'raise', delayMs: 30_000 });
  for (const grantedMs of [30_000, 30_001]) expect(delayDecision(30_000, grantedMs)).toEqual({ kind: 'enough' });
});

it('logind reads its delay from a file, in whole seconds', () => {
  expect(logindDropIn(30_000)).toContain('\n[Login]\nInhibitDelayMaxSec=30\n');
  expect(logindDropIn(1_500)).toContain('InhibitDelayMaxSec=2\n');
});

it('a signal announces a shutdown, or that it was cancelled', () => {
  expect([[true], [false], [true, 'x']].map(preparingForShutdown)).toEqual([true, false, true]);
  for (const body of [[], ['true'], [1], [null]]) expect(preparingForShutdown(body)).toBeUndefined();
});

it('what the system did not grant is logged with both delays', () => {
  for (const { delayTooShort } of [LOGIND_SHUTDOWN, PRESHUTDOWN])
    expect(delayTooShort(30_000, 5_000)).toMatch(/ 30s .*current value is 5s$/);
});
