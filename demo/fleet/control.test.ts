import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Control, ControlError } from '../../shared/host/control-socket.ts';
import { sendFleetCommand, serveFleetControl } from './control.ts';
import { type Fleet, startFleet } from './fleet.ts';

describe('controlling a running fleet', () => {
  let dir: string;
  let path: string;
  let fleet: Fleet;
  let control: Control | undefined;
  let isThere: boolean;
  let promised: unknown;
  let planned: { readonly callback: () => void; readonly delayMs: number }[];

  beforeEach(() => {
    isThere = false;
    promised = undefined;
    planned = [];
    dir = mkdtempSync(join(tmpdir(), 'fleet-'));
    path = join(dir, 'fleet.sock');
    fleet = startFleet({
      url: 'https://unused.invalid',
      token: 'unused',
      nodes: 3,
      timers: {
        set: (callback, delayMs) => planned.push({ callback, delayMs }),
        clear: () => undefined,
      },
      send: async (request) => {
        if (!isThere) return { kind: 'failed', cause: new Error('no API here') };
        promised = request;
        return { kind: 'answered', status: 200, body: {}, headers: {} };
      },
    });
  });

  afterEach(async () => {
    await control?.close();
    control = undefined;
    await fleet.stop();
    rmSync(dir, { recursive: true });
  });

  it('silences, lists and beats over the socket', async () => {
    control = await serveFleetControl(path, fleet);
    expect(await sendFleetCommand(path, { verb: 'silence', names: ['edge-b-*'] })).toEqual({
      kind: 'replied',
      reply: { kind: 'done', names: ['edge-b-0'] },
    });
    const listed = await sendFleetCommand(path, { verb: 'list', names: [] });
    expect(listed).toMatchObject({
      reply: { kind: 'listed', machines: [{ beating: true }, { name: 'edge-b-0', beating: false }, { beating: true }] },
    });
    await sendFleetCommand(path, { verb: 'beat', names: ['*'] });
    expect(fleet.status().beating).toBe(3);
  });

  it('silences a machine for a time only if the API accepts its promise', async () => {
    control = await serveFleetControl(path, fleet);
    const nap = { verb: 'sleep', names: ['edge-b-0'], seconds: 60, reason: 'ferry' } as const;
    expect(await sendFleetCommand(path, nap)).toMatchObject({ reply: { kind: 'refused', name: 'edge-b-0' } });
    expect(fleet.status().beating).toBe(3);
    isThere = true;
    expect(await sendFleetCommand(path, nap)).toMatchObject({ reply: { kind: 'done', names: ['edge-b-0'] } });
    expect(fleet.list().find(({ name }) => name === 'edge-b-0')?.beating).toBe(false);
    expect(promised).toMatchObject({ path: '/api/v1/nodes/edge-b-0', method: 'PATCH' });
    const none = { ...nap, seconds: 0 };
    expect(await sendFleetCommand(path, none)).toMatchObject({ reply: { kind: 'malformed' } });
  });

  it('silences a machine again and again, until it gets another command', async () => {
    control = await serveFleetControl(path, fleet);
    const isBeating = () => fleet.list().find(({ name }) => name === 'edge-b-0')?.beating;
    /** Runs the timer with this delay that was set last. */
    const pass = (delayMs: number): void => planned.findLast((timer) => timer.delayMs === delayMs)?.callback();
    const flap = { verb: 'flap', names: ['edge-b-0'], times: 2, seconds: 60 } as const;
    expect(await sendFleetCommand(path, flap)).toMatchObject({ reply: { kind: 'done', names: ['edge-b-0'] } });
    const states = [isBeating()];
    for (const delayMs of [60_000, 20_000, 60_000]) {
      pass(delayMs);
      states.push(isBeating());
    }
    expect(states).toEqual([false, true, false, true]);
    expect(planned.filter(({ delayMs }) => delayMs === 20_000)).toHaveLength(1);
    await sendFleetCommand(path, flap);
    await sendFleetCommand(path, { verb: 'silence', names: ['edge-b-0'] });
    pass(60_000);
    expect(isBeating()).toBe(false);
    expect(await sendFleetCommand(path, { ...flap, times: 0 })).toMatchObject({ reply: { kind: 'malformed' } });
  });

  it('sets a label of the Nodes', async () => {
    control = await serveFleetControl(path, fleet);
    isThere = true;
    const label = { verb: 'label', names: ['edge-a-0'], key: 'link', value: 'cell' } as const;
    expect(await sendFleetCommand(path, label)).toMatchObject({ reply: { kind: 'done', names: ['edge-a-0'] } });
    expect(promised).toMatchObject({
      method: 'PATCH',
      path: '/api/v1/nodes/edge-a-0',
      body: { metadata: { labels: { link: 'cell' } } },
    });
  });

  it('keeps the end of a planned silence when a label is set during it', async () => {
    control = await serveFleetControl(path, fleet);
    isThere = true;
    await sendFleetCommand(path, { verb: 'sleep', names: ['edge-a-0'], seconds: 60, reason: 'ferry' });
    await sendFleetCommand(path, { verb: 'label', names: ['edge-a-0'], key: 'link', value: 'cell' });
    planned.findLast(({ delayMs }) => delayMs === 60_000)?.callback();
    expect(fleet.list().find(({ name }) => name === 'edge-a-0')?.beating).toBe(true);
  });

  it('kills the relay of a zone that has one, and of no other', async () => {
    control = await serveFleetControl(path, fleet);
    const [zone = ''] = fleet.list().map((machine) => machine.zone);
    const relay = async (action: 'start' | 'kill' | 'remove') =>
      (await sendFleetCommand(path, { verb: 'relay', names: [zone], action })) as { reply: { kind: string } };
    const kinds = [];
    for (const action of ['kill', 'start', 'kill', 'remove', 'remove'] as const)
      kinds.push((await relay(action)).reply.kind);
    expect(kinds).toEqual(['refused', 'done', 'done', 'done', 'refused']);
  });

  it('says which names are unknown', async () => {
    control = await serveFleetControl(path, fleet);
    expect(await sendFleetCommand(path, { verb: 'silence', names: ['edge-z-1'] })).toEqual({
      kind: 'replied',
      reply: { kind: 'unknown', names: ['edge-z-1'] },
    });
  });

  it('answers a command it does not know', async () => {
    control = await serveFleetControl(path, fleet);
    const outcome = await sendFleetCommand(path, { verb: 'explode', names: [] } as never);
    expect(outcome).toMatchObject({ reply: { kind: 'malformed' } });
  });

  it('reports that nothing runs when there is no socket or a dead one', async () => {
    expect(await sendFleetCommand(path, { verb: 'list', names: [] })).toEqual({ kind: 'notRunning' });
  });

  it('replaces a socket file that a killed process left', async () => {
    writeFileSync(path, '');
    control = await serveFleetControl(path, fleet);
    expect(await sendFleetCommand(path, { verb: 'list', names: [] })).toMatchObject({ kind: 'replied' });
  });

  it('is for the owner only and leaves no file behind', async () => {
    control = await serveFleetControl(path, fleet);
    expect(statSync(path).mode & 0o077).toBe(0);
    await control.close();
    control = undefined;
    expect(existsSync(path)).toBe(false);
  });

  it('refuses to replace the socket of a fleet that answers', async () => {
    control = await serveFleetControl(path, fleet);
    await expect(serveFleetControl(path, fleet)).rejects.toThrow(ControlError);
  });
});
