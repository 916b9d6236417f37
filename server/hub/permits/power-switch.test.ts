import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { powerSwitch, requireProgram } from './power-switch.ts';

const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-switch-'));
afterAll(() => rmSync(directory, { recursive: true }));
const said: unknown[] = [];
const log = {
  debug: () => {},
  info: () => {},
  error: () => {},
  warn: (_: string, fields: object = {}) => said.push(fields),
};
beforeEach(() => {
  said.length = 0;
});

function program(script: string, mode = 0o700): string {
  const file = join(directory, `switch-${script.length}-${mode}`);
  writeFileSync(file, `#!/bin/sh\n${script}\n`, { mode });
  return file;
}

it('is a program with the name of the node as its only argument', async () => {
  const seen = join(directory, 'seen');
  const switchOff = powerSwitch(program(`echo "$# $1" > ${seen}`), log);
  expect(await switchOff('edge-1.site.example')).toBe(true);
  expect(readFileSync(seen, 'utf8')).toBe('1 edge-1.site.example\n');
  expect(said).toEqual([]);
});

it('says nothing of a machine when the program fails, or does not end', async () => {
  expect(await powerSwitch(program('echo first >&2; echo "socket 7 does not answer" >&2; exit 3'), log)('m1')).toBe(
    false,
  );
  expect(await powerSwitch(program('exec sleep 60'), log, 100)('m1')).toBe(false);
  expect(await powerSwitch(join(directory, 'absent'), log)('m1')).toBe(false);
  expect(said).toEqual([
    { nodeName: 'm1', why: 'socket 7 does not answer' },
    { nodeName: 'm1', why: 'no end within 0.1 s' },
    { nodeName: 'm1', why: expect.stringContaining('ENOENT') },
  ]);
});

it('says nothing of a machine when no process can be made', async () => {
  expect(await powerSwitch(program('true'), log)('m\0')).toBe(false);
  expect(said).toEqual([{ nodeName: 'm\0', why: expect.stringContaining('null bytes') }]);
});

it('is refused at the start when it cannot be started', () => {
  expect(() => requireProgram(program('true'))).not.toThrow();
  for (const file of [program('true', 0o600), join(directory, 'absent'), directory]) {
    expect(() => requireProgram(file)).toThrow(`--power-off: ${file} cannot be started`);
  }
});
