import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { endsWithTest } from '../../../test/support/started-process.ts';
import { type Launch, launch } from './launch.ts';

let folder: string;
beforeEach(() => {
  folder = folderForTest();
});

const start = (script: string, more: Partial<Launch> = {}): ChildProcess =>
  endsWithTest(
    launch({
      file: 'sh',
      args: ['-c', script],
      env: { PATH: process.env['PATH'] ?? '' },
      options: { cwd: folder, detached: true },
      input: 'ignore',
      output: 'pipe',
      enter: undefined,
      dataBytesMax: undefined,
      oomScoreAdjust: 900,
      ...more,
    }),
  );
async function outcome(child: ChildProcess) {
  const [output, error, [code]] = await Promise.all([
    child.stdout === null ? '' : text(child.stdout),
    child.stderr === null ? '' : text(child.stderr),
    once(child, 'exit'),
  ]);
  return { output, error, code };
}
const limited = { dataBytesMax: 512 * 2 ** 20 };

describe.each([
  ['directly', {}],
  ['behind a gate', limited],
])('a program started %s', (_how, more) => {
  it('has its arguments, environment, directory and output', async () => {
    const env = { PATH: process.env['PATH'] ?? '', COLOR: 'green' };
    const script = 'echo "$COLOR $1"; pwd; env | grep -c -e NODEKEEPER -e OLDPWD; echo bad >&2; exit 4';
    const { output, error, code } = await outcome(
      start('', { ...more, env, args: ['-c', script, 'sh', 'an argument'] }),
    );
    expect(output.split('\n')).toEqual(['green an argument', folder, '0', '']);
    expect([error, code]).toEqual(['bad\n', 4]);
  });

  it('has its variables, whatever their names, and no others', async () => {
    const env = { PATH: process.env['PATH'] ?? '', 'odd-name': 'a b', _: 'own', even: '' };
    const { output } = await outcome(start('', { ...more, file: 'env', args: [], env }));
    const lines = output.split('\n').filter((line) => !line.startsWith('PATH=') && line !== '');
    expect(lines.filter((line) => !line.startsWith('_=')).sort()).toEqual(['even=', 'odd-name=a b']);
  });

  it('has its score', () => {
    const child = start('read line', { ...more, input: 'pipe' });
    expect(readFileSync(`/proc/${child.pid}/oom_score_adj`, 'utf8')).toBe('900\n');
  });

  it('reads its input, writes its message to descriptor 4, and has no other', async () => {
    const file = join(folder, 'message');
    writeFileSync(file, '');
    const message = openSync(file, 'w');
    const child = start('read line; echo "got $line"; echo sent >&4; (echo x >&3) 2>/dev/null || echo closed', {
      ...more,
      input: 'pipe',
      message,
    });
    closeSync(message);
    child.stdin?.end('hello\n');
    const { output } = await outcome(child);
    expect(output).toBe('got hello\nclosed\n');
    expect(readFileSync(file, 'utf8')).toBe('sent\n');
  });

  it.each([
    ['none', 'ENOENT'],
    ['./none', 'ENOENT'],
    ['./plain', 'EACCES'],
  ])('does not start from %s: %s', async (file, code) => {
    writeFileSync(join(folder, 'plain'), 'text');
    chmodSync(join(folder, 'plain'), 0o644);
    const failure = await new Promise<unknown>((resolve) => {
      try {
        start('', { ...more, file, args: [] }).once('error', resolve);
      } catch (cause) {
        resolve(cause);
      }
    });
    expect(failure).toMatchObject({ code });
  });
});

it('a limit of memory applies to the data of the program', async () => {
  const { output } = await outcome(start('ulimit -d', { dataBytesMax: 300 * 2 ** 20 }));
  expect(output).toBe('307200\n');
});

describe('a group', () => {
  it('is entered before the program runs', async () => {
    const file = join(folder, 'entered');
    const entered: number[] = [];
    const child = start(`cat ${file}; echo $$`, {
      enter: (pid) => {
        entered.push(pid);
        writeFileSync(file, 'entered\n');
      },
    });
    const { output } = await outcome(child);
    expect(entered).toEqual([child.pid]);
    expect(output).toBe(`entered\n${child.pid}\n`);
  });

  it('that cannot be entered ends the program before it ran', async () => {
    const ran = join(folder, 'ran');
    const pids: number[] = [];
    const enter = (pid: number) => {
      pids.push(pid);
      throw new Error('EBUSY');
    };
    expect(() => start(`touch ${ran}`, { enter })).toThrow('EBUSY');
    expect(pids).toHaveLength(1);
    expect(() => readFileSync(ran)).toThrow('ENOENT');
  });
});

describe('the command line of a program', () => {
  const words = (more: Partial<Launch>): readonly string[] => start('exit 0', more).spawnargs;
  const PATH = process.env['PATH'] ?? '';

  it('is its own, without a gate', () => {
    expect(words({})).toEqual(['sh', '-c', 'exit 0']);
  });

  it('is behind a shell, and behind env(1) for names that a shell does not accept', () => {
    expect(words(limited).slice(3)).toEqual(['/bin/sh', 'sh', '-c', 'exit 0']);
    expect(words({ ...limited, env: { PATH, 'odd-name': 'a', PLAIN: 'b' } }).slice(3)).toEqual([
      '/bin/sh',
      '/usr/bin/env',
      'odd-name=a',
      'sh',
      '-c',
      'exit 0',
    ]);
  });

  it('keeps variables of the shell that the program has', () => {
    const script = (env: Record<string, string>): string => words({ ...limited, env: { PATH, ...env } })[2] ?? '';
    expect(script({})).toContain('\nunset NODEKEEPER_RELEASE PWD OLDPWD SHLVL _\n');
    expect(script({ PWD: '/', SHLVL: '1' })).toContain('\nunset NODEKEEPER_RELEASE OLDPWD _\n');
  });
});

describe('a program that cannot be executed, behind a gate', () => {
  const codeOf = (more: Partial<Launch>): unknown => {
    try {
      return start('', { ...limited, ...more }).pid;
    } catch (cause) {
      return (cause as NodeJS.ErrnoException).code;
    }
  };

  it('is refused as without one: found anywhere but not executable, or not found', () => {
    writeFileSync(join(folder, 'tool'), '', { mode: 0o644 });
    expect(codeOf({ file: 'tool', env: { PATH: `${folder}:/none` } })).toBe('EACCES');
    expect(codeOf({ file: 'tool', env: { PATH: `/none:${folder}` } })).toBe('EACCES');
    expect(codeOf({ file: 'other', env: { PATH: `${folder}:/none` } })).toBe('ENOENT');
    expect(codeOf({ file: './tool' })).toBe('EACCES');
  });

  it('is searched in the directory of the agent if it has no other', () => {
    // The tests run in the root of the project.
    expect(codeOf({ file: './package.json', options: {} })).toBe('EACCES');
    expect(codeOf({ file: 'package.json', env: {} })).toBe('EACCES');
  });
});
