import { expect, it } from 'vitest';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import { START_MS } from '../../test/support/controlled-fleet.ts';
import { monitorParts } from '../../test/support/monitor-parts.ts';
import { onTickMessage } from './tick-message.ts';

const restarts = (warnings: readonly { readonly message: string; readonly fields: unknown }[]) =>
  warnings.filter(({ message }) => message.includes('restarted')).map(({ fields }) => fields);

it('the watchdog warns of a chain that has ended, but not of one that never began', async () => {
  const first = monitorParts({}, { nowMs: START_MS });
  expect(await onTickMessage(first.dependencies, 'watchdog')).toMatchObject({ kind: 'over' });
  expect(restarts(first.warnings)).toEqual([]);
  expect(await onTickMessage(first.dependencies, 'watchdog')).toEqual({ kind: 'alive' });
  const { items } = first.dependencies;
  const later = monitorParts({}, { nowMs: START_MS + 60 * defaultPolicy.nodeMonitorPeriodSeconds * 1_000, items });
  expect(await onTickMessage(later.dependencies, 'watchdog')).toMatchObject({ kind: 'over' });
  expect(restarts(later.warnings)).toEqual([{ claimedAtMs: START_MS }]);
});
