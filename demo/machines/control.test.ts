import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { MACHINE_SOCKET, type MachineCommand, type Machines, sendMachineCommand, serveMachines } from './control.ts';

describe('commands to real machines', () => {
  let dataDirectory: string;
  let machines: Machines;
  let asked: string[];

  beforeEach(async () => {
    asked = [];
    dataDirectory = mkdtempSync(join(tmpdir(), 'nodekeeper-machines-'));
    machines = await serve();
  });

  const serve = () =>
    serveMachines({
      dataDirectory,
      cluster: { url: 'https://127.0.0.1:1', authorityHash: undefined },
      createToken: async (nodeName) => {
        asked.push(nodeName);
        throw new Error('no response');
      },
    });

  afterEach(async () => {
    await machines.stop();
    rmSync(dataDirectory, { recursive: true });
  });

  const reply = async (command: MachineCommand) => {
    const outcome = await sendMachineCommand(join(dataDirectory, MACHINE_SOCKET), command);
    return outcome.kind === 'replied' ? outcome.reply : outcome.kind;
  };

  it.each(['', 'Site', '../up', '-a', 'a'.repeat(64)])('refuse the name %j', async (name) => {
    expect(await reply({ verb: 'join', name })).toEqual({
      kind: 'refused',
      why: `${name} is no name of a node, such as site-1`,
    });
    expect(asked).toEqual([]);
  });

  it('say why a machine cannot join, which leaves nothing behind', async () => {
    expect(await reply({ verb: 'join', name: 'site-1' })).toEqual({ kind: 'refused', why: 'site-1: no response' });
    expect(asked).toEqual(['site-1']);
    expect(await reply({ verb: 'list' })).toEqual({ kind: 'listed', machines: [] });
  });

  it('are served although a machine of before cannot start again', async () => {
    await machines.stop();
    mkdirSync(join(dataDirectory, 'machines'));
    writeFileSync(join(dataDirectory, 'machines', 'site-1'), 'no directory');
    const complain = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    machines = await serve();
    expect(complain.mock.calls).toEqual([[expect.stringMatching(/machine site-1 does not start again: EEXIST/)]]);
    complain.mockRestore();
    expect(await reply({ verb: 'list' })).toEqual({ kind: 'listed', machines: [] });
  });

  it.each(['cutLink', 'restoreLink', 'powerCycle'] as const)('refuse %s of an unknown machine', async (verb) => {
    expect(await reply({ verb, name: 'site-2' })).toEqual({ kind: 'refused', why: 'no such machine: site-2' });
  });

  it('refuse what is no command', async () => {
    expect(await reply({ verb: 'explode', name: 'site-1' } as never)).toMatchObject({ kind: 'malformed' });
    expect(await reply({ verb: 'join' } as never)).toMatchObject({ kind: 'malformed' });
  });
});
