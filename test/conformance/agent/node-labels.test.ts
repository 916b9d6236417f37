/** Area RN of the agent: node labels it may be configured with. */
import { describe, expect, it } from 'vitest';
import { nodeLabelComplaints } from '../../../agent/rules/node-labels.ts';

describe('configured node labels', () => {
  it.each([
    ['RN-01', 'foo.kubernetes.io/x', false],
    ['RN-03', 'kubelet.kubernetes.io/x', true],
    ['RN-05', 'node-role.kubernetes.io/worker', false],
    ['RN-07', 'k8s.io/x', false],
    ['RN-09', 'kubernetes.io/hostname', true],
    ['RN-11', 'kubernetes.io/x', false],
    ['RN-13', 'beta.kubernetes.io/instance-type', true],
    ['RN-15', 'failure-domain.beta.kubernetes.io/region', true],
  ])('%s %s: accepted %s', (_, key, accepted) => {
    const complaints = nodeLabelComplaints({ [key]: 'v' });
    if (accepted) expect(complaints).toEqual([]);
    else {
      expect(complaints).toEqual([
        expect.stringMatching(/^unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels/),
      ]);
      expect(complaints[0]).toContain(key);
    }
  });
});
