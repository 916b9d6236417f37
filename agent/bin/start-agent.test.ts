/** The start program as a process, with small programs in place of the agent. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { buildAgent } from '../../scripts/build-agent.ts';
import { updateFiles } from '../adapters/updates/update-files.ts';
import { InstalledVersions } from '../app/updates/installed-versions.ts';

const prints = (text: string, then = ''): string => `console.log(${JSON.stringify(text)}); ${then}`;

/** Time passes at once. */
const HURRY = 'const wait = setTimeout; globalThis.setTimeout = (then, ms) => wait(then, ms >= 1_000 ? 1 : ms);';
const preloads = (...programs: readonly string[]): string =>
  programs.map((program) => `--import=data:text/javascript,${encodeURIComponent(program)}`).join(' ');

describe('the start program', () => {
  let built: string;
  let agent: string;
  let state: string;
  let versions: InstalledVersions;
  beforeAll(async () => {
    built = mkdtempSync(join(tmpdir(), 'nodekeeper-start-'));
    agent = await buildAgent(built, '7.8.9');
    writeFileSync(join(built, 'real.mjs'), readFileSync(agent));
    writeFileSync(agent, prints('installed', 'console.log(process.env.NODEKEEPER_AGENTS)'));
  });
  afterAll(() => rmSync(built, { recursive: true }));
  beforeEach(() => {
    state = mkdtempSync(join(tmpdir(), 'nodekeeper-state-'));
    versions = new InstalledVersions(updateFiles(join(state, 'agents')));
  });
  afterEach(() => rmSync(state, { recursive: true }));

  const start = (env: Readonly<Record<string, string>> = {}, command: readonly string[] = ['--config', '/none']) => {
    const { stdout, status, signal, stderr } = spawnSync(
      process.execPath,
      [join(built, 'start-agent.mjs'), ...command],
      {
        env: { ...process.env, STATE_DIRECTORY: state, ...env },
        encoding: 'utf8',
        timeout: 30_000,
      },
    );
    return { lines: stdout.trim().split('\n'), status, signal, stderr };
  };
  async function install(program: string, version = '2.0.0'): Promise<void> {
    const sha256 = createHash('sha256').update(program).digest('hex');
    async function* content() {
      yield Buffer.from(program);
    }
    await versions.tryNext(await versions.store(sha256, content()), { version, sha256 });
  }

  it('runs the installed agent, and names the directory of updates', () => {
    expect(start()).toMatchObject({ lines: ['installed', join(state, 'agents')], status: 0 });
  });

  it('runs a version on trial three times, and then the one before', async () => {
    await install(prints('new', 'process.exit(3);'));
    for (let count = 0; count < 3; count += 1) expect(start()).toMatchObject({ lines: ['new'], status: 3 });
    expect(start().lines[0]).toBe('installed');
    // Whether the version or the cluster is at fault is decided by the first heartbeat of the installed agent.
    expect(await versions.failed()).toMatchObject([
      { message: '3 starts without 2 accepted heartbeats', isDoubtful: true },
    ]);
  });

  it('ends a trial without heartbeats after two minutes, and leaves open who is at fault', async () => {
    await install(prints('new', 'setInterval(() => {}, 1_000);'));
    expect(start({ NODE_OPTIONS: preloads(HURRY) })).toMatchObject({ lines: ['new'], status: 1 });
    expect(await versions.failed()).toMatchObject([{ message: 'no accepted heartbeats in 120 s', isDoubtful: true }]);
    expect(start().lines[0]).toBe('installed');
  });

  it.each(['EIO', 'EMFILE'])('leaves it to the next start when the record cannot be read: %s', async (code) => {
    await install(prints('new', 'setInterval(() => {}, 1_000);'));
    // After the read of the start.
    const fault = `const fs = process.getBuiltinModule('node:fs');
      const { readFile } = fs;
      let reads = 0;
      fs.readFile = (path, ...rest) => {
        if (!String(path).endsWith('/trial.json') || ++reads === 1) return readFile(path, ...rest);
        rest.at(-1)(Object.assign(new Error('${code}: made to fail'), { code: '${code}' }));
      };
      process.getBuiltinModule('node:module').syncBuiltinESMExports();`;
    const unreadable = { NODE_OPTIONS: preloads(HURRY, fault) };
    for (let count = 1; count <= 3; count += 1) {
      const { lines, status, stderr } = start(unreadable);
      expect([lines, status]).toEqual([['new'], 1]);
      const logged = stderr
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(logged).toMatchObject([
        {
          message: 'the record of the trial cannot be read; the agent ends, and the next start decides',
          version: '2.0.0',
        },
      ]);
      expect(await versions.failed()).toEqual([]);
      expect((await versions.trial())?.starts).toBe(count);
    }
    // Three starts are the limit: the version may be at fault, as the cluster may.
    expect(start(unreadable).lines[0]).toBe('installed');
    expect(await versions.failed()).toMatchObject([{ isDoubtful: true }]);
  });

  describe('with a version that blocks its event loop', () => {
    const blocks = 'for (;;) {}';
    /** With a sleep of the shell that waits for this condition alone, for 20 s at most. */
    function startInHaste(condition = 'true') {
      const bin = join(state, 'bin');
      mkdirSync(bin);
      const wait = `n=0; until ${condition} || test $n = 2000; do n=$((n + 1)); /bin/sleep 0.01; done`;
      writeFileSync(join(bin, 'sleep'), `#!/bin/sh\n${wait}\n`, { mode: 0o755 });
      return start({ PATH: `${bin}:${process.env['PATH']}` });
    }

    it('kills it after the trial', async () => {
      await install(prints('new', blocks));
      expect(startInHaste()).toMatchObject({ lines: ['new'], signal: 'SIGKILL' });
      expect((await versions.trial())?.starts).toBe(1);
    });

    it('kills it though the record cannot be read', async () => {
      const record = JSON.stringify(join(state, 'agents', 'trial.json'));
      const unreadable = `process.getBuiltinModule('fs').rmSync(${record}); process.getBuiltinModule('fs').mkdirSync(${record});`;
      await install(prints('new', `${unreadable} ${blocks}`));
      expect(startInHaste()).toMatchObject({ lines: ['new'], signal: 'SIGKILL' });
    });

    it('does not kill it when it was confirmed', async () => {
      const record = JSON.stringify(join(state, 'agents', 'trial.json'));
      const confirmed = `process.getBuiltinModule('fs').rmSync(${record});`;
      const end = 'const end = Date.now() + 1_000; while (Date.now() < end) {} process.exit(4);';
      await install(prints('new', `${confirmed} ${end}`));
      // The record is removed when the watchdog looks, also in a slow run.
      const isConfirmed = `! test -e ${record}`;
      expect(startInHaste(isConfirmed)).toMatchObject({ lines: ['new'], status: 4, signal: null });
    });
  });

  it('returns at once from a version that is no program', async () => {
    await install('this is no program');
    expect(start().status).toBe(1);
    expect(start().lines[0]).toBe('installed');
    const [failed] = await versions.failed();
    expect([failed?.message, failed?.isDoubtful]).toEqual([expect.stringMatching(/^it does not start: /), undefined]);
  });

  it('keeps a confirmed version, whatever its exit code', async () => {
    await install(prints('first'), '2.0.0');
    const trial = await versions.trial();
    if (trial === undefined) throw new Error('no trial');
    await versions.confirm(trial);
    for (let count = 0; count < 5; count += 1) expect(start().lines).toEqual(['first']);
    await install(prints('second', 'process.exit(1);'), '3.0.0');
    for (let count = 0; count < 3; count += 1) start();
    expect(start().lines).toEqual(['first']);
  });

  it('counts no start for a command', async () => {
    await install(prints('new'));
    for (let count = 0; count < 5; count += 1) expect(start({}, ['plan']).lines).toEqual(['new']);
    expect((await versions.trial())?.starts).toBe(0);
  });

  it('runs the installed agent when the current file is damaged or missing', async () => {
    await install(prints('new'));
    const trial = await versions.trial();
    if (trial === undefined) throw new Error('no trial');
    await versions.confirm(trial);
    writeFileSync(join(state, 'agents', trial.file), 'damaged, not a program');
    expect(start().lines[0]).toBe('installed');
    rmSync(join(state, 'agents', trial.file));
    expect(start().lines[0]).toBe('installed');
    expect(readdirSync(join(state, 'agents'))).toEqual(['current']);
  });

  it('runs the installed agent when the records cannot be read', () => {
    writeFileSync(join(state, 'agents'), 'a file in place of the directory');
    expect(start().lines[0]).toBe('installed');
  });

  it('is built with an agent that prints its version', () => {
    const { stdout } = spawnSync(process.execPath, [join(built, 'real.mjs'), '--version'], { encoding: 'utf8' });
    expect(stdout).toBe('7.8.9\n');
  });

  it('is built without a copy of each built-in module per file, which costs more than 1 MB of memory', () => {
    const count = `let getters = 0;
      const define = Object.defineProperty;
      Object.defineProperty = (...args) => {
        if (args[2].get !== undefined) getters += 1;
        return define(...args);
      };
      process.once('exit', () => console.log(getters));`;
    const options = ['--import', `data:text/javascript,${encodeURIComponent(count)}`, join(built, 'real.mjs')];
    const { stdout } = spawnSync(process.execPath, [...options, '--version'], { encoding: 'utf8' });
    const [version, getters] = stdout.trim().split('\n');
    expect(version).toBe('7.8.9');
    expect(Number(getters)).toBeLessThan(1_000);
  });
});
