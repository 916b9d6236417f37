import { describe, expect, it } from 'vitest';
import { nodeLabelComplaints, registerTaintComplaints } from './node-labels.ts';

describe('labels to register with', () => {
  it('may be of any name space but those of Kubernetes', () => {
    expect(nodeLabelComplaints({ site: 'north', 'example.com/pool': 'a', 'kubernetes.io.example.com/x': '' })).toEqual(
      [],
    );
  });

  it('may be below what belongs to the kubelet', () => {
    expect(nodeLabelComplaints({ 'a.node.kubernetes.io/x': 'v', 'node.kubernetes.io/exclude-disruption': '' })).toEqual(
      [],
    );
  });

  it('are named all at once when they are refused', () => {
    const [complaint, ...others] = nodeLabelComplaints({
      'z.k8s.io/x': '',
      'node.kubernetes.io.k8s.io/x': '',
      ok: '',
      'node.kubernetes.io': 'no-name-space',
    });
    expect(others).toEqual([]);
    expect(complaint).toContain('node.kubernetes.io.k8s.io/x, z.k8s.io/x');
  });

  it('must be labels', () => {
    expect(nodeLabelComplaints({ 'a/b/c': 'v', k: 'no blanks' })).toHaveLength(2);
  });
});

describe('taints to register with', () => {
  it('must be taints without a time', () => {
    expect(registerTaintComplaints([{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }])).toEqual([]);
    const complaints = registerTaintComplaints([
      { key: 'a', effect: 'NoExecute', timeAdded: '2026-01-01T00:00:00Z' },
      { key: 'a', effect: 'NoExecute' },
      { key: '/', effect: 'Never' as 'NoExecute' },
    ]);
    expect(complaints.join('\n')).toMatch(/registerWithTaints\[0\].timeAdded/);
    expect(complaints.join('\n')).toMatch(/registerWithTaints\[1\]: Duplicate/);
    expect(complaints.join('\n')).toMatch(/registerWithTaints\[2\].effect/);
  });
});
