import { describe, expect, it } from 'vitest';
import type { DaemonSetSpec } from '../../../shared/kinds/types.ts';
import { allowsSurge, rolloutLimits } from './rollout.rule.ts';

const spec = (rollingUpdate: object): DaemonSetSpec => ({ updateStrategy: { type: 'RollingUpdate', rollingUpdate } });

describe('the limits of a rolling update', () => {
  it('WS-29 are shares of the wanted nodes, rounded up', () => {
    expect(rolloutLimits(spec({ maxUnavailable: '50%', maxSurge: 0 }), 3)).toEqual({ maxUnavailable: 2, maxSurge: 0 });
    expect(rolloutLimits(spec({ maxUnavailable: 0, maxSurge: '10%' }), 3)).toEqual({ maxUnavailable: 0, maxSurge: 1 });
  });

  it('WS-31 allow one unavailable pod if both are 0', () => {
    expect(rolloutLimits(spec({ maxUnavailable: 0, maxSurge: 0 }), 2).maxUnavailable).toBe(1);
    expect(rolloutLimits(spec({ maxUnavailable: 0, maxSurge: 0 }), 0).maxUnavailable).toBe(0);
  });

  it('allow no surge with OnDelete', () => {
    expect(allowsSurge(spec({ maxSurge: '1%' }))).toBe(true);
    expect(allowsSurge({ updateStrategy: { type: 'OnDelete', rollingUpdate: { maxSurge: 1 } } })).toBe(false);
  });
});
