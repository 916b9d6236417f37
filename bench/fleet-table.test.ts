import { describe, expect, it } from 'vitest';
import { phaseFigures } from './fleet-requests.ts';
import { combined } from './fleet-rounds.ts';
import { fleetTable } from './fleet-table.ts';

const aProcess = (pid: number, name: string, cpuMs: number, megabytes = 100) => ({
  ...{ pid, name, cpuMs },
  residentBytes: megabytes * 1_048_576,
});

describe('figures of a phase', () => {
  it('divide the CPU of each process by the requests, also of a process that started meanwhile', () => {
    const figures = phaseFigures({
      ...{ phase: 'POST nodes', seconds: 2, times: [1, 2, 3, 4], failed: 1 },
      restMsPerSecond: 3,
      before: [aProcess(1, 'node', 1_000)],
      after: [aProcess(1, 'node', 1_020), aProcess(2, 'dynoxide', 8, 10)],
    });
    expect(figures).toMatchObject({ requests: 4, failed: 1, perSecond: 2, p50Ms: 2, p99Ms: 4, residentMegabytes: 110 });
    expect(figures.cpuMsPerRequest).toBe(7);
    expect(figures.cpuMsPerRequestNet).toBe(5.5);
    expect(figures.cpuByProcess).toEqual({ node: 5, dynoxide: 2 });
  });

  it('are per second where nothing is requested', () => {
    const use = { before: [aProcess(1, 'node', 0)], after: [aProcess(1, 'node', 50)] };
    expect(
      phaseFigures({ phase: 'idle', seconds: 5, times: [], failed: 0, restMsPerSecond: 0, ...use }).cpuMsPerRequest,
    ).toBe(10);
  });
});

describe('the table of the fleet benchmark', () => {
  const phase = (name: string, requests: number, seconds: number, cpuMs: number) => ({
    ...{ phase: name, seconds, requests, failed: 0, perSecond: requests / seconds, p50Ms: 1, p99Ms: 2 },
    ...{ cpuMsPerRequest: cpuMs, cpuMsPerRequestNet: cpuMs / 2, cpuByProcess: { node: cpuMs }, residentMegabytes: 300 },
  });
  const ours = [
    phase('POST nodes', 100, 1, 4),
    phase('PATCH nodes/status, first', 100, 0.5, 3),
    phase('POST leases', 100, 0.5, 1),
  ];

  it('has a column per server, and adds up a registration', () => {
    const lines = fleetTable({ ours, theirs: [phase('POST nodes', 100, 0.5, 1)] }).split('\n');
    expect(lines[0]).toBe('| request | ours | theirs |');
    expect(lines[2]).toBe(
      '| POST nodes | 4 ms of CPU (2); 100 per second; p50 1, p99 2 ms | 1 ms of CPU (0.5); 200 per second; p50 1, p99 2 ms |',
    );
    expect(lines.at(-2)).toBe('| a registration: the three requests | 8 ms of CPU (4); 50 per second |  |');
    expect(lines.at(-1)).toBe('| most memory of all processes | 300 MB | 300 MB |');
  });

  it('shows several rounds as one: sums, means, and the worst p99 and memory', () => {
    const rounds = [[phase('POST nodes', 100, 1, 4)], [{ ...phase('POST nodes', 100, 3, 8), p99Ms: 9, failed: 2 }]];
    expect(combined(rounds)).toEqual([
      {
        ...{ phase: 'POST nodes', seconds: 4, requests: 200, failed: 2, perSecond: 50, p50Ms: 1, p99Ms: 9 },
        ...{ cpuMsPerRequest: 6, cpuMsPerRequestNet: 3, cpuByProcess: { node: 6 }, residentMegabytes: 300 },
      },
    ]);
  });

  it('leaves out the CPU of a server without process ids', () => {
    const table = fleetTable({ remote: ours.map((each) => ({ ...each, cpuMsPerRequest: Number.NaN })) });
    expect(table).not.toContain('CPU');
  });
});
