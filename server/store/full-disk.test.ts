import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import type { FullDiskStory } from '../../test/support/store-on-full-disk.ts';

const STORY = new URL('../../test/support/store-on-full-disk.ts', import.meta.url).pathname;
/** A file system of its own, in a namespace of its own: nothing remains of it. */
const onSmallDisk = (directory: string, command: string) =>
  spawnSync('unshare', ['-rm', 'sh', '-c', `mount -t tmpfs -o size=6m tmpfs ${directory} && ${command}`], {
    encoding: 'utf8',
    timeout: 25_000,
  });

const directory = mkdtempSync(join(tmpdir(), 'nodekeeper-full-'));
const canMount = onSmallDisk(directory, 'true').status === 0;

it('fails writes on a full disk and still reads, and writes again once there is room', (context) => {
  try {
    if (!canMount) context.skip('no mount namespaces');
    const { stdout, stderr } = onSmallDisk(directory, `${process.execPath} --no-warnings ${STORY} ${directory}`);
    expect(stderr).toBe('');
    const story = JSON.parse(stdout) as FullDiskStory;
    expect(story).toMatchObject({
      fault: { code: 'unreachable', retryable: true },
      failsAgain: true,
      isFailing: [true, false],
      refusal: 'unreadable',
      writesAfter: true,
      wrongCacheEntries: 0,
      findings: [],
    });
    expect(story.acknowledged).toBeGreaterThan(0);
    expect(story.readWhileFull).toBe(story.acknowledged);
    expect(story.readAfterOpen).toBe(story.acknowledged);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
