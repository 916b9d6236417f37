import { describe, expect, it } from 'vitest';
import { DAEMON_SET_TOLERATIONS } from '../../../test/support/daemon-set.ts';
import { withDefaultTolerations } from './default-tolerations.ts';

const defaults = 300;

describe('withDefaultTolerations', () => {
  it('is settled after one application', () => {
    const once = withDefaultTolerations([{ key: 'x', operator: 'Exists' }], defaults);
    expect(once).toHaveLength(3);
    expect(withDefaultTolerations(once, defaults)).toBe(once);
  });

  it('does not look at operator or seconds of what is there', () => {
    const own = [{ key: 'node.kubernetes.io/not-ready', operator: 'Equal', value: 'never' }] as const;
    expect(withDefaultTolerations(own, defaults).map((toleration) => toleration.key)).toEqual([
      'node.kubernetes.io/not-ready',
      'node.kubernetes.io/unreachable',
    ]);
  });

  it('adds nothing to what the pods of a DaemonSet bring', () => {
    expect(withDefaultTolerations(DAEMON_SET_TOLERATIONS, defaults)).toBe(DAEMON_SET_TOLERATIONS);
  });
});
