import { expect, it } from 'vitest';
import { mountPathBelow } from './windows-pod.ts';

it.each([
  ['/var/run/secrets', 'var\\run\\secrets'],
  ['C:\\data\\web', 'data\\web'],
  ['d:/data/../../x', 'data\\x'],
  ['C://data/./b:x', 'data\\b:x'],
  ['\\', ''],
])('a pod on Windows has the volume of %s below its directory', (mountPath, expected) => {
  expect(mountPathBelow(mountPath)).toBe(expected);
});
