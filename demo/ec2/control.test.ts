import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type LocalCloud, startLocalCloud } from '../../aws-local/cloud/server.ts';
import type { Control } from '../../shared/host/control-socket.ts';
import { nameMachines } from '../fleet/names.ts';
import { type CloudCommand, sendCloudCommand, serveCloudControl } from './control.ts';
import { type CloudMachines, createInstances } from './machines.ts';

const NOW_MS = Date.UTC(2026, 10, 20);

describe('controlling the local EC2', () => {
  let directory: string;
  let path: string;
  let cloud: LocalCloud;
  let machines: CloudMachines;
  let control: Control;
  let power: string[];

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'cloud-'));
    path = join(directory, 'cloud.sock');
    cloud = await startLocalCloud({ clock: { nowMs: () => NOW_MS }, region: 'us-east-1', accountId: '000000000000' });
    machines = createInstances(cloud, nameMachines(3, ['one', 'two']), { region: 'us-east-1', nowMs: NOW_MS });
    power = [];
    machines.power({
      silence: (names) => power.push(`off ${names.join()}`),
      beat: (names) => power.push(`on ${names.join()}`),
    });
    control = await serveCloudControl(path, cloud, machines);
  });
  afterEach(async () => {
    await control.close();
    await cloud.stop();
    rmSync(directory, { recursive: true });
  });

  const send = async (command: CloudCommand) => {
    const outcome = await sendCloudCommand(path, command);
    if (outcome.kind !== 'replied') throw new Error(outcome.kind);
    return outcome.reply;
  };

  it('creates the same instance for a machine on every start', () => {
    const again = createInstances(cloud, nameMachines(3, ['one', 'two']), { region: 'us-east-1', nowMs: NOW_MS });
    expect(again.providerIds).toEqual(machines.providerIds);
    expect(machines.providerIds.get('edge-b-0')).toMatch(/^aws:\/\/\/us-east-1b\/i-[0-9a-f]{17}$/);
    expect(machines.poweredOff.size).toBe(0);
    cloud.world.terminate(machines.instanceIds.get('edge-b-0')!);
    const later = createInstances(cloud, nameMachines(3, ['one', 'two']), { region: 'us-east-1', nowMs: NOW_MS });
    expect([...later.poweredOff]).toEqual(['edge-b-0']);
  });

  it('changes instances on request, and power follows', async () => {
    expect(await send({ verb: 'stop', names: ['edge-a-*'] })).toMatchObject({
      kind: 'done',
      instances: [
        { name: 'edge-a-0', state: 'stopped', order: 'done' },
        { name: 'edge-a-1', state: 'stopped', order: 'done' },
      ],
    });
    await send({ verb: 'start', names: ['edge-a-0'] });
    await send({ verb: 'vanish', names: [machines.instanceIds.get('edge-b-0')!] });
    expect(power).toEqual([
      'off edge-a-0',
      'off edge-a-0',
      'off edge-a-1',
      'off edge-a-1',
      'on edge-a-0',
      'off edge-b-0',
    ]);
    expect(await send({ verb: 'list' })).toMatchObject({
      kind: 'listed',
      endpoint: cloud.endpoint,
      trouble: null,
      instances: [
        { name: 'edge-a-0', state: 'running' },
        { name: 'edge-b-0', state: 'unknown' },
        { name: 'edge-a-1', state: 'stopped' },
      ],
    });
    await send({ verb: 'terminate', names: ['edge-a-0'] });
    expect(await send({ verb: 'start', names: ['edge-a-0'] })).toMatchObject({
      instances: [{ state: 'terminated', order: 'incorrectState' }],
    });
  });

  it('lets every call fail until the error is cleared', async () => {
    expect(await send({ verb: 'error', code: 'InternalError' })).toEqual({ kind: 'errorSet', code: 'InternalError' });
    expect(cloud.trouble).toBe('InternalError');
    await send({ verb: 'error', code: null });
    expect(cloud.trouble).toBeNull();
  });

  it('says which names are unknown and what it does not understand', async () => {
    expect(await send({ verb: 'stop', names: ['edge-z-0'] })).toEqual({ kind: 'unknown', names: ['edge-z-0'] });
    expect(await send({ verb: 'explode' } as never)).toMatchObject({ kind: 'malformed' });
    expect(await send({ verb: 'stop', names: [1] } as never)).toMatchObject({ kind: 'malformed' });
  });
});
