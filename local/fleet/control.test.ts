import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Control, ControlError } from '../control-socket.ts';
import { sendFleetCommand, serveFleetControl } from './control.ts';
import { type Fleet, startFleet } from './fleet.ts';

describe('controlling a running fleet', () => {
  let dir: string;
  let path: string;
  let fleet: Fleet;
  let control: Control | undefined;
  let isThere: boolean;
  let promised: unknown;

  beforeEach(() => {
    isThere = false;
    promised = undefined;
    dir = mkdtempSync(join(tmpdir(), 'fleet-'));
    path = join(dir, 'fleet.sock');
    fleet = startFleet({
      url: 'https://unused.invalid',
      token: 'unused',
      nodes: 3,
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
