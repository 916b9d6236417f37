import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CommandError } from './command.ts';
import { type AccessOptions, apiAccess } from './kubeconfig.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'nk-kubeconfig-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const refusal = (options: AccessOptions): string => {
  try {
    apiAccess(options, {});
  } catch (error) {
    if (error instanceof CommandError) return error.message.replaceAll(`${directory}/`, '');
    throw error;
  }
  return 'accepted';
};

describe('access that cannot be used is an expected failure, which names its place', () => {
  const user = 'users: [{name: u, user: {token: t}}]';
  const context = 'contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x';
  const server = (url: string): string => `clusters: [{name: c, cluster: {server: "${url}"}}]`;

  it.each([
    ['a: 1\nb: ]', 'config:2: '],
    ['users: *missing', 'config: Unresolved alias'],
    ['contexts: 5', 'config: contexts must be a list of mappings'],
    ['clusters: [null]', 'config: clusters must be a list of mappings'],
    [`${context}\n${user}\n${server('nope')}`, 'the server in config must be a URL such as https://'],
    [`${context}\n${user}\n${server('https://h')}`, 'accepted'],
    [
      `${context}\nusers: [{name: u, user: {tokenFile: missing}}]\n${server('https://h')}`,
      'missing cannot be read: ENOENT',
    ],
  ])('a kubeconfig with %j', (text, expected) => {
    const kubeconfig = join(directory, 'config');
    writeFileSync(kubeconfig, text);
    expect(refusal({ kubeconfig })).toContain(expected);
  });

  it.each([
    [{ server: 'nope', token: 't' }, '--server must be a URL such as https://nodes.example.com, not "nope"'],
    [{ server: '', token: 't' }, '--server must be a URL'],
    [{ server: 'file:///etc', token: 't' }, '--server must be a URL'],
    [{ server: 'https://h', token: 't', 'certificate-authority': '/nowhere/ca' }, '/nowhere/ca cannot be read: ENOENT'],
    [{ kubeconfig: '/' }, '/ cannot be read: EISDIR'],
  ])('options %j', (options, expected) => expect(refusal(options)).toContain(expected));
});
