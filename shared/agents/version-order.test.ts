import { expect, it } from 'vitest';
import { isOlderVersion } from './version-order.ts';

it('orders versions as Semantic Versioning does', () => {
  const ascending = [
    '0.9.10-rc.1',
    '0.9.10',
    '1.0.0-alpha',
    '1.0.0-alpha.1',
    '1.0.0-alpha.beta',
    '1.0.0-beta.2',
    '1.0.0-beta.11',
    '1.0.0-rc.1',
    '1.0.0',
    '1.0.0.1',
    '2026.2.3',
    '2026.11.22',
  ];
  for (const [at, version] of ascending.entries()) {
    for (const [index, other] of ascending.entries()) {
      expect([version, other, isOlderVersion(version, other)]).toEqual([version, other, at < index]);
    }
  }
});

it.each([
  ['1.0.0', '1.0.0+build.7'],
  ['1.0', '1.0.0'],
  ['v1.2.3', '1.2.3'],
  ['3f2a1bc', '1.0.0'],
  ['1.0.0', 'main'],
])('has no order for %s and %s', (version, other) => {
  expect([isOlderVersion(version, other), isOlderVersion(other, version)]).toEqual([false, false]);
});
