import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** An empty folder, for a test or its `beforeEach`. It is removed after the test. */
export function folderForTest(): string {
  const folder = mkdtempSync(join(tmpdir(), 'nodekeeper-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
