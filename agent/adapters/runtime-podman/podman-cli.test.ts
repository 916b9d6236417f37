import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import { folderForTest } from '../../../test/support/folder-for-test.ts';
import { until } from '../../../test/support/until.ts';
import { PodmanCli, PodmanError } from './podman-cli.ts';

let folder: string;
beforeEach(() => {
  folder = folderForTest();
});

/** Its program is this script. */
function podman(script: string): PodmanCli {
  const program = join(folder, 'podman');
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return new PodmanCli(program);
}
const CALL = { timeoutMs: 60_000 };
const failure = async (call: Promise<unknown>): Promise<PodmanError> => {
  const error = await call.catch((cause: unknown) => cause);
  expect(error).toBeInstanceOf(PodmanError);
  return error as PodmanError;
};

describe('a call of podman', () => {
  it('returns what it prints, with the variables of the agent and its own', async () => {
    const run = podman('cat; echo "$1 $2 $OWN $HOME"').run(['pod', 'ps'], { ...CALL, env: { OWN: 'own' } });
    expect(await run).toBe(`pod ps own ${process.env['HOME']}\n`);
  });

  it('fails with its error output, and its exit code', async () => {
    const error = await failure(podman('echo no such pod >&2; exit 125').run(['pod', 'inspect', 'x'], CALL));
    expect([error.message, error.exitCode]).toEqual([`${folder}/podman pod inspect: no such pod`, 125]);
    const silent = await failure(podman('exit 3').run(['info'], CALL));
    expect([silent.message, silent.exitCode]).toEqual([`${folder}/podman info : 3`, 3]);
    const long = await failure(
      podman('head -c 5000 /dev/zero | tr "\\\\0" x >&2; echo end >&2; exit 1').run(['x'], CALL),
    );
    expect(long.message).toHaveLength(`${folder}/podman x : `.length + 1_999);
    expect(long.message).toMatch(/xend$/);
  });

  it('fails when there is no such program', async () => {
    const error = await failure(new PodmanCli(join(folder, 'absent')).run(['info'], CALL));
    expect([error.message, error.exitCode, error.cause]).toEqual([
      expect.stringMatching(/absent: spawn .* ENOENT$/),
      undefined,
      expect.objectContaining({ code: 'ENOENT' }),
    ]);
  });

  it('is killed at its time limit, when it is stopped, and when it prints too much', async () => {
    const wait = 'exec sleep 600';
    const late = await failure(podman(wait).run(['wait'], { timeoutMs: 20 }));
    expect([late.message, late.exitCode]).toEqual([`${folder}/podman wait : SIGKILL`, undefined]);
    const stop = new AbortController();
    const stopped = failure(podman(`: > ${folder}/here; ${wait}`).run(['wait'], { ...CALL, stop: stop.signal }));
    await until(() => existsSync(join(folder, 'here')), { withinMs: 20_000 });
    stop.abort();
    expect((await stopped).message).toMatch(/SIGKILL$/);
    expect((await failure(podman(wait).run(['wait'], { ...CALL, stop: stop.signal }))).message).toMatch(/SIGKILL$/);
    expect((await failure(podman('exec cat /dev/zero').run(['logs'], CALL))).message).toMatch(/SIGKILL$/);
  });

  it('has objects in a list, or none', async () => {
    expect(await podman(`echo '[{"a":1},"x"]'`).json(['pod', 'ps'], CALL)).toEqual([{ a: 1 }]);
    expect(await podman('echo " "').json(['pod', 'ps'], CALL)).toEqual([]);
  });
});
