import { beforeEach, describe, expect, it } from 'vitest';
import { silentLog } from '../../test/support/agent-api.ts';
import { SteppedTime } from '../../test/support/stepped-time.ts';
import type { SiteLine, SiteLineEvents } from '../ports/site.ts';
import { SiteHub } from './site-hub.ts';

const LINES = 1_000;
let watched: number;
let hub: SiteHub;
let time: SteppedTime;
let stop: AbortController;
beforeEach(() => {
  time = new SteppedTime(0);
  stop = new AbortController();
  watched = 0;
  hub = new SiteHub({
    time,
    probe: async () => true,
    report: { update() {} },
    withhold: () => false,
    log: silentLog,
    meter: {
      count() {},
      gauge(name, value) {
        if (name === 'nodekeeper_agent_site_machines') watched = value;
      },
    },
  });
});

interface Client extends SiteLineEvents {
  readonly sent: string[];
  readonly beat: (node: string, port?: number) => void;
  readonly isClosed: () => boolean;
}

function connect(address = '192.0.2.1'): Client {
  const sent: string[] = [];
  let isClosed = false;
  let events: SiteLineEvents | undefined;
  const line: SiteLine = {
    address,
    send: (text) => void sent.push(JSON.parse(text).kind),
    async close() {
      isClosed = true;
      events?.closed();
    },
  };
  const accepted = hub.accept(line);
  events = accepted;
  const beat = (node: string, port = 7_445) => accepted.received(JSON.stringify({ kind: 'beat', node, port }));
  return { ...accepted, sent, beat, isClosed: () => isClosed };
}

describe('the relay of a site', () => {
  it('has lines to 1,000 machines, and closes others', () => {
    const clients = Array.from({ length: LINES }, () => connect());
    expect(clients.some((each) => each.isClosed())).toBe(false);
    const refused = connect();
    expect(refused.isClosed()).toBe(true);
    refused.beat('other');
    expect(refused.sent).toEqual([]);
    clients[0]?.closed();
    expect(connect().isClosed()).toBe(false);
  });

  it('knows 1,000 machines: one that lost its connection makes room for another', () => {
    const clients = Array.from({ length: LINES }, (_, index) => {
      const client = connect();
      client.beat(`m${index}`);
      return client;
    });
    clients[7]?.closed();
    const other = connect();
    other.beat('other');
    expect([other.sent, other.isClosed()]).toEqual([['seen'], false]);
    clients[8]?.closed();
    const known = connect();
    known.beat('m9');
    expect([known.sent, clients[9]?.isClosed()]).toEqual([['seen'], true]);
  });

  it('closes a line that it cannot read, or on which another machine beats', () => {
    const unread = connect();
    unread.received('nonsense');
    expect(unread.isClosed()).toBe(true);
    unread.beat('late');
    expect(unread.sent).toEqual([]);
    const one = connect();
    one.beat('a');
    one.beat('a');
    expect([one.sent, one.isClosed()]).toEqual([['seen', 'seen'], false]);
    one.beat('b');
    expect(one.isClosed()).toBe(true);
  });

  it('closes a line without beats, and every line when it stops', async () => {
    const running = hub.run(stop.signal);
    const idle = connect();
    const beating = connect();
    for (let passedMs = 0; passedMs < 60_000 && !idle.isClosed(); passedMs += 1_000) {
      beating.beat('a');
      await time.pass(1_000);
    }
    expect([idle.isClosed(), beating.isClosed()]).toEqual([true, false]);
    stop.abort();
    await running;
    expect(beating.isClosed()).toBe(true);
    expect(connect().isClosed()).toBe(true);
  });

  it('counts the machines that are connected and answer probes', async () => {
    void hub.run(stop.signal);
    const machine = connect();
    machine.beat('a');
    const silent = connect();
    silent.beat('b', 0);
    await time.pass(1_000);
    expect(watched).toBe(1);
    machine.closed();
    expect(watched).toBe(0);
    stop.abort();
  });

  it('does not wait for a machine that said goodbye', async () => {
    void hub.run(stop.signal);
    const machine = connect();
    machine.beat('a');
    machine.received(JSON.stringify({ kind: 'goodbye', forSeconds: 600 }));
    expect(machine.isClosed()).toBe(true);
    const stranger = connect();
    stranger.received(JSON.stringify({ kind: 'goodbye', forSeconds: 600 }));
    expect(stranger.isClosed()).toBe(true);
    stop.abort();
  });
});

it('a relay that is made long before it runs has not hung', async () => {
  const lines: string[] = [];
  const log = { ...silentLog, info: (message: string) => void lines.push(message) };
  const meter = { count() {}, gauge() {} };
  const own = new SiteHub({
    time,
    probe: async () => true,
    report: { update() {} },
    withhold: () => false,
    log,
    meter,
  });
  await time.pass(600_000);
  const running = own.run(stop.signal);
  await time.pass(5_000);
  expect(lines).toEqual([]);
  stop.abort();
  await running;
});
