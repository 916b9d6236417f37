import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLog, silentMeter } from '../../test/support/agent-api.ts';
import { MemorySite } from '../../test/support/memory-site.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { SiteLineEvents } from '../ports/site.ts';
import { SiteMember } from './site-member.ts';

let time: SteppedTime;
let site: MemorySite;
/** Machines with a heartbeat on its way. */
let onTheWay: Set<string>;
beforeEach(async () => {
  time = new SteppedTime(0);
  onTheWay = new Set();
  site = new MemorySite(time, { withhold: (name) => onTheWay.has(name) });
  site.start('a', 'b', 'c', 'd', 'e');
  await time.pass(10_000);
});
afterEach(() => site.end());

/** Time until this holds. Milliseconds; undefined: not within a minute. */
async function timeUntil(holds: () => boolean): Promise<number | undefined> {
  for (let passedMs = 0; passedMs <= 60_000; passedMs += 50) {
    if (holds()) return passedMs;
    await time.pass(50);
  }
  return undefined;
}

describe('a site', () => {
  it('reports nothing while all machines beat, and probes each machine once', async () => {
    await time.pass(600_000);
    expect(site.reports()).toEqual([]);
    expect(site.probes.toSorted()).toEqual(['hub>a', 'hub>b', 'hub>c', 'hub>d', 'hub>e']);
  });

  it('reports a machine without power by the relay and one other machine', async () => {
    site.powerOff('b');
    const reportedMs = await timeUntil(() => site.reports().length === 2);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
    expect(reportedMs).toBeGreaterThanOrEqual(600);
    expect(reportedMs).toBeLessThanOrEqual(1_800);
  });

  it('reports a killed process sooner, because its connection breaks', async () => {
    site.kill('b');
    expect(await timeUntil(() => site.reports().length === 2)).toBeLessThanOrEqual(1_200);
  });

  it('reports a machine only when none of its heartbeats is on its way, which would void the report', async () => {
    onTheWay.add('b');
    site.powerOff('b');
    await time.pass(4_000);
    expect(site.reports()).toEqual([]);
    onTheWay.delete('b');
    expect(await timeUntil(() => site.reports().length === 2)).toBeLessThanOrEqual(100);
    // A later heartbeat voids it: the machine lives.
    onTheWay.add('b');
    await time.pass(4_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });

  it('withdraws both reports at once when the machine beats again', async () => {
    site.powerOff('b');
    await time.pass(6_000);
    for (const name of ['hub', 'a', 'c', 'd', 'e']) site.reportOf(name).accepted(site.reportOf(name).text());
    site.restore('b>*', '*>b');
    await timeUntil(() => site.reports().includes('hub '));
    expect(site.reports()).toEqual(['hub ', 'machine ']);
  });

  it('reports nothing of a machine that answers probes without beats, and withdraws when it answers', async () => {
    site.cut('line>b');
    await time.pass(30_000);
    expect(site.reports()).toEqual([]);
    site.cut('b>*');
    await timeUntil(() => site.reports().length === 2);
    site.restore('b>*');
    expect(await timeUntil(() => site.reports().length === 0)).toBeLessThanOrEqual(3_000);
  });

  it.each(['b>hub', 'hub>b'])('reports by the relay alone where only the way %s is cut', async (way) => {
    site.cut(way);
    await timeUntil(() => site.reports().length > 0);
    await time.pass(30_000);
    expect(site.reports()).toEqual(['hub b']);
  });

  it.each(['b>a', 'a>b'])('reports nothing where the way %s between two machines is cut', async (way) => {
    site.cut(way);
    await time.pass(60_000);
    expect(site.reports()).toEqual([]);
  });

  it('reports nothing by a machine where the relay itself has an answer', async () => {
    site.cut('line>b', ...['a', 'c', 'd', 'e'].map((name) => `${name}>b`));
    await time.pass(30_000);
    expect(site.probes.some((probe) => /^[acde]>b$/.test(probe))).toBe(true);
    expect(site.reports()).toEqual([]);
  });

  it('asks another machine when the first one is lost, which then reports nothing', async () => {
    site.powerOff('b');
    await timeUntil(() => site.reports().length === 2);
    const asked = site.probes.findLast((probe) => !probe.startsWith('hub'))!.slice(0, 1);
    site.shuttingDown.add(asked);
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
    expect(site.reportOf(asked).text()).toBeUndefined();
  });

  it.each([
    [['hub'], []],
    [['a', 'c', 'd', 'e'], ['hub b']],
  ])('reports nothing by a process that hung during its probe: %j', async (names, reports) => {
    for (const name of names) site.probeMs.set(name, 1_600);
    site.powerOff('b');
    await time.pass(30_000);
    expect(site.reports()).toEqual(reports);
  });

  it('keeps a report while a later probe of its process proves nothing', async () => {
    site.powerOff('b');
    await timeUntil(() => site.reports().length === 2);
    for (const name of ['a', 'c', 'd', 'e']) site.probeMs.set(name, 1_600);
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });

  it('asks the machines in turn', async () => {
    const asked: string[] = [];
    for (const name of ['b', 'c', 'd']) {
      site.powerOff(name);
      await timeUntil(() => site.reports().length === 2);
      asked.push(site.probes.findLast((probe) => !probe.startsWith('hub'))!);
      site.restore(`${name}>*`, `*>${name}`);
      await timeUntil(() => site.reports().length === 0);
      await time.pass(30_000);
    }
    expect(asked).toEqual(['a>b', 'b>c', 'c>d']);
  });

  it('ends its reports and probes after a minute', async () => {
    site.powerOff('b');
    await time.pass(70_000);
    expect(site.reports()).toEqual([]);
    site.probes.length = 0;
    await time.pass(600_000);
    expect(site.probes).toEqual([]);
    site.restore('b>*', '*>b');
    await time.pass(60_000);
    site.powerOff('b');
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });
});

describe('a relay with many silent machines', () => {
  it('reports nothing while more than a third of its site is silent, and says so once', async () => {
    site.powerOff('b', 'c', 'd');
    const all: string[] = [];
    for (let passed = 0; passed < 200; passed += 1) {
      await time.pass(100);
      all.push(...site.reports());
    }
    expect(all).toEqual([]);
    expect(site.logged).toEqual([expect.stringMatching(/^many machines of the site are silent at once/)]);
  });

  it('reports those that stay silent when the others answer again', async () => {
    site.powerOff('b', 'c', 'd');
    await time.pass(10_000);
    for (const name of ['c', 'd']) site.restore(`${name}>*`, `*>${name}`);
    await timeUntil(() => site.reports().length > 0);
    expect(site.reports()).toContain('hub b');
  });

  it('counts anew after all were silent: a machine that stays away is not reported', async () => {
    const all: string[] = [];
    site.powerOff('a', 'b', 'c', 'd', 'e');
    await time.pass(20_000);
    for (const name of ['a', 'b', 'c', 'd']) site.restore(`${name}>*`, `*>${name}`);
    for (let passed = 0; passed < 600; passed += 1) {
      await time.pass(100);
      all.push(...site.reports());
    }
    expect(all).toEqual([]);
  });

  it('counts anew after it was suspended', async () => {
    site.powerOff('b');
    await timeUntil(() => site.reports().length === 2);
    time.suspend(30_000);
    await time.pass(500);
    expect(site.logged).toEqual([expect.stringMatching(/^this relay did not run for a while/)]);
    expect(site.reports()).toEqual([]);
  });
});

describe('a machine that announces its silence', () => {
  it('is not reported while it is suspended, and is when it does not return', async () => {
    site.members.get('b')!.leave(30);
    await time.pass(0);
    site.powerOff('b');
    await time.pass(31_000);
    expect(site.reports()).toEqual([]);
    await time.pass(5_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });

  it('is watched again after the resume', async () => {
    site.members.get('b')!.leave(3_600);
    await time.pass(10_000);
    site.members.get('b')!.rejoin();
    await time.pass(10_000);
    site.powerOff('b');
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });

  it('is not reported during a graceful shutdown, and is watched again after a cancelled one', async () => {
    site.shuttingDown.add('b');
    await time.pass(2_000);
    site.probes.length = 0;
    await time.pass(60_000);
    expect([site.reports(), site.probes]).toEqual([[], []]);
    site.shuttingDown.delete('b');
    await time.pass(10_000);
    site.powerOff('b');
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });

  it('has a minute for a restart of its agent', async () => {
    await site.stop('b');
    await time.pass(59_000);
    expect(site.reports()).toEqual([]);
    site.start('b');
    await time.pass(60_000);
    expect(site.reports()).toEqual([]);
    await site.stop('b');
    await time.pass(66_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });
});

describe('what machines send', () => {
  it('is not watched if the machine never answers a probe', async () => {
    site.ports.set('f', 0);
    site.start('f', 'g');
    site.cut('hub>g');
    const forged = site.connect('i');
    forged.say({ kind: 'beat', node: 'h', port: 1 });
    await time.pass(30_000);
    site.powerOff('f');
    await time.pass(10_000);
    expect(site.reports()).toEqual([]);
  });

  it('closes a connection with an unreadable line, with two names, with a name of a newer one, and without beats', async () => {
    const lines = [site.connect('x'), site.connect('y'), site.connect('z')];
    lines[0]!.say({ kind: 'beats' });
    lines[1]!.say({ kind: 'beat', node: 'y', port: 1 });
    expect(lines.map((each) => each.isOpen())).toEqual([false, true, true]);
    site.connect('w').say({ kind: 'beat', node: 'y', port: 1 });
    await time.pass(0);
    expect(lines.map((each) => each.isOpen())).toEqual([false, false, true]);
    lines[1] = site.connect('y');
    lines[1].say({ kind: 'beat', node: 'y', port: 1 });
    expect(lines.map((each) => each.isOpen())).toEqual([false, true, true]);
    lines[1].say({ kind: 'beat', node: 'z', port: 1 });
    expect(lines.map((each) => each.isOpen())).toEqual([false, false, true]);
    await time.pass(16_000);
    expect(lines.map((each) => each.isOpen())).toEqual([false, false, false]);
  });

  it('of two connections with one name the newest counts: a claimed name hides a silence, and reports none', async () => {
    const claim = site.connect('x');
    site.powerOff('b');
    const all: string[] = [];
    for (let passed = 0; passed < 30; passed += 1) {
      if (passed < 20) claim.say({ kind: 'beat', node: 'b', port: 1 });
      await time.pass(2_000);
      all.push(...site.reports());
    }
    expect(all).toEqual([]);
    expect(site.logged).toEqual([]);
  });

  it('is bounded in connections', () => {
    const lines = Array.from({ length: 1_000 }, (_, index) => site.connect(`x${index}`));
    expect(lines.filter((each) => each.isOpen())).toHaveLength(995);
  });

  it('is refused by a relay that has stopped', async () => {
    await site.end();
    expect(site.connect('x').isOpen()).toBe(false);
  });
});

describe('a machine that loses its relay', () => {
  /** Times of the heartbeats that it sends because of it, in seconds. */
  async function answers(name: string, seconds: number): Promise<number[]> {
    const times: number[] = [];
    for (let tenth = 0; tenth < seconds * 10; tenth += 1) {
      const report = site.reportOf(name);
      if (report.isNews()) times.push(tenth / 10);
      report.accepted(report.text());
      await time.pass(100);
    }
    return times;
  }

  it.each(['b>hub', 'hub>b', 'line>b'])('sends heartbeats while it can be reported: %s is cut', async (way) => {
    expect(await answers('b', 100)).toEqual([]);
    site.cut(way);
    const times = await answers('b', 300);
    expect(times[0]).toBeLessThanOrEqual(2.5);
    expect(times.every((at, index) => index === 0 || at - times[index - 1]! <= 4.1)).toBe(true);
    expect(times.at(-1)).toBeGreaterThan(75);
    expect(times.at(-1)).toBeLessThan(90);
  });

  it('sends the first one soon when the connection breaks, not at the same moment as others', async () => {
    site.killHub();
    expect((await answers('b', 60)).slice(0, 2)).toEqual([1, 5]);
  });

  it('stops when the relay answers again', async () => {
    site.cut('b>hub');
    await answers('b', 20);
    site.restore('b>hub');
    await answers('b', 10);
    expect(await answers('b', 100)).toEqual([]);
  });

  it('sends none when it leaves itself', async () => {
    site.members.get('b')!.leave(30);
    expect(await answers('b', 100)).toEqual([]);
    await site.stop('b');
    expect(await answers('b', 100)).toEqual([]);
  });
});

describe('a machine with a relay that', () => {
  it('does not watch its site asks again after a minute', async () => {
    site.isSupported = false;
    site.start('f');
    await time.pass(50_000);
    site.isSupported = true;
    site.probes.length = 0;
    await time.pass(5_000);
    expect(site.probes).toEqual([]);
    await time.pass(30_000);
    expect(site.probes).toEqual(['hub>f']);
  });

  it('does not answer connects again', async () => {
    site.cut('hub>b');
    await time.pass(8_000);
    site.restore('hub>b');
    await time.pass(30_000);
    site.powerOff('b');
    await time.pass(6_000);
    expect(site.reports()).toEqual(['hub b', 'machine b']);
  });
});

it('a machine probes at most 32 others at a time, and never itself', async () => {
  const probed = new Set<string>();
  const stop = new AbortController();
  let events: SiteLineEvents | undefined;
  const member = new SiteMember({
    nodeName: 'x',
    join: async (own) => {
      events = own;
      return { kind: 'joined', line: { address: '10.0.0.1', send() {}, close: async () => {} } };
    },
    probe: async ({ node }) => {
      probed.add(node);
      return true;
    },
    report: site.reportOf('x'),
    witnessPort: () => 0,
    isShuttingDown: () => false,
    time,
    fraction: () => 0,
    log: silentLog,
    meter: silentMeter,
  });
  const running = member.run(stop.signal);
  await time.pass(0);
  const ask = (node: string) => events!.received(JSON.stringify({ kind: 'probe', node, address: '10.0.0.2', port: 1 }));
  for (const node of ['x', ...Array.from({ length: 40 }, (_, index) => `n${index}`)]) ask(node);
  await time.pass(3_000);
  expect([probed.size, probed.has('x')]).toEqual([32, false]);
  stop.abort();
  await running;
});

it.each([
  ['', false],
  ['no JSON', false],
  ['{"kind":"other"}', false],
  ['{"kind":"seen"}', true],
  ['{"kind":"confirm","node":"n1"}', true],
  ['{"kind":"release","node":"n1"}', true],
])('a machine keeps its connection after the line %j: %s', async (text, isKept) => {
  const stop = new AbortController();
  let events: SiteLineEvents | undefined;
  let joins = 0;
  let closes = 0;
  const running = new SiteMember({
    nodeName: 'x',
    join: async (own) => {
      events = own;
      joins += 1;
      return {
        kind: 'joined',
        line: {
          address: '10.0.0.1',
          send: () => own.received('{"kind":"seen"}'),
          close: async () => {
            closes += 1;
          },
        },
      };
    },
    probe: async () => true,
    report: site.reportOf('x'),
    witnessPort: () => 0,
    isShuttingDown: () => false,
    time,
    fraction: () => 0,
    log: silentLog,
    meter: silentMeter,
  }).run(stop.signal);
  await time.pass(1_000);
  events!.received(text);
  await time.pass(20_000);
  expect([joins, closes]).toEqual(isKept ? [1, 0] : [2, 1]);
  stop.abort();
  await running;
});
