import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const STORY = new URL('../../test/support/store-on-read-only-disk.ts', import.meta.url).pathname;
/** ext4 in a file, in a namespace of its own: nothing remains of it. */
const onDisk = (directory: string, script: string) =>
  spawnSync(
    'unshare',
    [
      '-m',
      'sh',
      '-ec',
      `mount -t tmpfs tmpfs ${directory}; cd ${directory}; truncate -s 32m image; PATH=$PATH:/sbin mkfs.ext4 -q -F image
      mkdir disk; again() { mount -o loop,errors=remount-ro image disk; }; again; test -w /sys/fs/ext4; ${script}
      umount disk`,
    ],
    { encoding: 'utf8', timeout: 25_000 },
  );

const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-read-only-'));
const canMount = onDisk(directory, 'true').status === 0;

it('fails writes on a disk that becomes read-only and still reads, and is whole on the repaired disk', (context) => {
  try {
    if (!canMount) context.skip('no loop devices');
    const run = (mode: string): string => `${process.execPath} --no-warnings ${STORY} ${directory}/disk ${mode}`;
    const { stdout, stderr } = onDisk(
      directory,
      `${run('write')}; ${run('refuse')}; umount disk; PATH=$PATH:/sbin fsck.ext4 -p image >/dev/null || true; again; ${run('read')}`,
    );
    expect(stderr).toBe('');
    const [written, refused, read] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    const fault = { code: 'unreachable', retryable: true };
    expect(written).toEqual({ faults: [fault, fault], found: 100, isFailing: true });
    expect(refused).toEqual({
      code: 'unreadable',
      message: expect.stringContaining('check its permissions, the disk'),
    });
    expect(read).toEqual({ found: 100, findings: [] });
  } finally {
    rmSync(directory, { recursive: true });
  }
});
