import { describe, expect, it } from 'vitest';
import { daemonSetTolerations, withDefaultTolerations } from './default-tolerations.ts';

const defaults = { notReadySeconds: 300, unreachableSeconds: 300 };

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
});

describe('daemonSetTolerations', () => {
  it('tolerates network-unavailable only on the host network', () => {
    const keys = (hostNetwork: boolean) => daemonSetTolerations({ hostNetwork }).map(({ key }) => key);
    expect(keys(true)).toContain('node.kubernetes.io/network-unavailable');
    expect(keys(false)).toEqual(keys(true).slice(0, -1));
  });

  it('leaves nothing for the default tolerations to add', () => {
    const own = daemonSetTolerations({ hostNetwork: false });
    expect(withDefaultTolerations(own, defaults)).toBe(own);
  });
});
