import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { shutdownStateFile } from './state-file.ts';

describe('the file of the last shutdown', () => {
  let root: string;
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'nodekeeper-state-'));
  });
  afterEach(() => rmSync(root, { recursive: true }));

  it('is read as it was written, for everybody to read, and nothing else is left', async () => {
    const file = shutdownStateFile(root);
    await file.write('one');
    await file.write('two');
    expect(await file.read()).toBe('two');
    expect(readdirSync(root)).toEqual(['graceful_node_shutdown_state']);
    const path = join(root, 'graceful_node_shutdown_state');
    expect([readFileSync(path, 'utf8'), statSync(path).mode & 0o777]).toEqual(['two', 0o644]);
  });

  it('is nothing where there was no shutdown', async () => {
    expect(await shutdownStateFile(root).read()).toBeUndefined();
  });

  it('throws when it cannot be written or read, and leaves nothing behind', async () => {
    await expect(shutdownStateFile(join(root, 'nowhere')).write('x')).rejects.toThrow('ENOENT');
    mkdirSync(join(root, 'graceful_node_shutdown_state'));
    await expect(shutdownStateFile(root).write('x')).rejects.toThrow();
    await expect(shutdownStateFile(root).read()).rejects.toThrow('EISDIR');
    expect(readdirSync(root)).toEqual(['graceful_node_shutdown_state']);
  });
});
