import { expect, it } from 'vitest';
import { imageNameFault } from './image-name.ts';

it.each([
  'busybox',
  'library/busybox:1.36',
  'localhost/web',
  'localhost:5000/team_a/web--x:v1.2-rc_1',
  'Registry.Example:443/a/b.c',
  '[fd00::1]:5000/web',
  `registry.example/web:1@sha256:${'a'.repeat(64)}`,
  'a'.repeat(64),
])('accepts %s', (image) => {
  expect(imageNameFault(image)).toBeUndefined();
});

it.each(['', '-a', '--help', 'dir:/x', 'docker-archive:/x.tar', 'https://x/y', 'Web', 'a//b', 'a:b:c', 'a@sha256:1'])(
  'refuses %j',
  (image) => {
    expect(imageNameFault(image)).toContain('invalid reference format');
  },
);
