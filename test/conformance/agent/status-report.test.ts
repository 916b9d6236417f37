/** SG: when status is written. SD: what counts as a change. */
import { describe, expect, it } from 'vitest';
import { labelsToSet, nodeChanged, reportDue, statusChanged } from '../../../agent/rules/status-report.ts';
import type { NodeStatus } from '../../../shared/kinds/types.ts';

const SECOND = 1_000;
const NOW_MS = Date.UTC(2024, 4, 1, 10);

interface ReportCase {
  readonly title: string;
  readonly lastSecondsAgo: number | undefined;
  readonly delaySeconds: number;
  readonly changed: boolean;
  /** Seconds, `new` for a random one; undefined when nothing is written. */
  readonly after: number | 'new' | undefined;
}

const reportCases: readonly ReportCase[] = [
  { title: 'SG-01 never reported', lastSecondsAgo: undefined, delaySeconds: 0, changed: false, after: 'new' },
  { title: 'SG-03 unchanged within the time', lastSecondsAgo: 240, delaySeconds: 0, changed: false, after: undefined },
  { title: 'SG-05 early, by the extra in force', lastSecondsAgo: 240, delaySeconds: -120, changed: false, after: 0 },
  { title: 'SG-07 changed', lastSecondsAgo: 1, delaySeconds: 0, changed: true, after: 'new' },
  { title: 'SG-09 late, by the extra in force', lastSecondsAgo: 450, delaySeconds: 150, changed: false, after: 0 },
];

describe('SG when status is written', () => {
  for (const { title, lastSecondsAgo, delaySeconds, changed, after } of reportCases) {
    it(title, () => {
      const lastReportAtMs = lastSecondsAgo === undefined ? undefined : NOW_MS - lastSecondsAgo * SECOND;
      const due = (fraction: number) =>
        reportDue(
          { lastReportAtMs, delayMs: delaySeconds * SECOND },
          { changed, nowMs: NOW_MS, reportFrequencyMs: 300 * SECOND, fraction: () => fraction },
        );
      if (after === 'new') {
        expect(due(0)).toEqual({ delayMs: -150 * SECOND });
        expect(due(0.5)).toEqual({ delayMs: 0 });
        expect(due(1 - Number.EPSILON)?.delayMs).toBeLessThan(150 * SECOND);
      } else expect(due(0.9)).toEqual(after === undefined ? undefined : { delayMs: after * SECOND });
    });
  }
});

const T = '2024-05-01T10:00:00Z';
const status: NodeStatus = {
  capacity: { cpu: '2', memory: '1Ki' },
  conditions: [
    { type: 'Ready', status: 'True', lastHeartbeatTime: T, lastTransitionTime: T },
    { type: 'MemoryPressure', status: 'False', lastHeartbeatTime: T, lastTransitionTime: T },
  ],
  addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
};
const changedBy = (change: (copy: NodeStatus) => void): boolean => {
  const after = structuredClone(status);
  change(after);
  return statusChanged(status, after);
};

describe('SD what counts as a status change', () => {
  it('SD-01 both absent is none', () => {
    expect(statusChanged(undefined, undefined)).toBe(false);
  });

  it('SD-03 one absent is one', () => {
    expect(statusChanged(undefined, status)).toBe(true);
    expect(statusChanged(status, undefined)).toBe(true);
  });

  it('SD-05 a heartbeat time is none, nor is the order or the spelling of a quantity', () => {
    const beat = (copy: NodeStatus) => {
      copy.conditions![0]!.lastHeartbeatTime = '2024-05-01T10:05:00Z';
    };
    expect(changedBy(beat)).toBe(false);
    expect(changedBy((copy) => copy.conditions!.reverse())).toBe(false);
    expect(
      changedBy((copy) => {
        copy.capacity = { memory: '1024', cpu: '2000m' };
        copy['images'] = [];
      }),
    ).toBe(false);
  });

  it('SD-07 Ready True to False is one', () => {
    expect(
      changedBy((copy) => {
        copy.conditions![0]!.status = 'False';
      }),
    ).toBe(true);
  });

  it('SD-09 one condition more is one', () => {
    expect(changedBy((copy) => copy.conditions!.push({ type: 'DiskPressure', status: 'False' }))).toBe(true);
  });

  it('SD-11 one address more is one', () => {
    expect(changedBy((copy) => copy.addresses!.push({ type: 'Hostname', address: 'n' }))).toBe(true);
  });

  it('SD-13 a missing label of the architecture is one', () => {
    const platform = { operatingSystem: 'linux', architecture: 'arm64' };
    const labels = { 'kubernetes.io/os': 'linux' };
    expect(labelsToSet(labels, platform)).toEqual({ 'kubernetes.io/arch': 'arm64' });
    const before = { metadata: { name: 'n', labels }, status };
    const after = { ...before, metadata: { name: 'n', labels: { ...labels, ...labelsToSet(labels, platform) } } };
    expect(nodeChanged(before, after)).toBe(true);
    expect(labelsToSet(after.metadata.labels, platform)).toEqual({});
  });
});
