import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { calculateJwkThumbprint, SignJWT } from 'jose';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  assembled,
  base64url,
  type NodeKeyPair,
  nodeKeyPair,
  nodeToken,
  signedBy,
} from '../../test/support/node-key-pair.ts';
import type { Authentication } from './authenticator.ts';
import type { NodeKey } from './node-identity.ts';
import { type NodeTokenOptions, nodeTokens } from './node-tokens.ts';
import { readPublicKey } from './public-keys.ts';

const NOW_MS = Date.UTC(2026, 0, 1);
const KEYS_LIVE_MS = 60_000;
const ec = nodeKeyPair('ES256');
const ed = nodeKeyPair('EdDSA');
const other = nodeKeyPair('ES256');

let stored: Map<string, NodeKey[]>;
let reads: string[];
let scheme: ReturnType<typeof nodeTokens>;
let nowMs: number;

const stores = (...pairs: readonly NodeKeyPair[]): NodeKey[] =>
  pairs.map(({ keyId, publicKey }) => ({ keyId, publicKey, addedAtMs: NOW_MS }));

beforeEach(() => {
  nowMs = NOW_MS;
  reads = [];
  stored = new Map([
    ['n1', stores(ec)],
    ['n2', stores(ed)],
  ]);
  scheme = schemeOf();
});

const schemeOf = (options: Partial<Omit<NodeTokenOptions, 'keys'>> = {}) =>
  nodeTokens({
    clusterId: 'here',
    keysLiveMs: KEYS_LIVE_MS,
    keys: {
      async keysOf(nodeName, { consistent }) {
        reads.push(`${nodeName} ${consistent ? 'consistent' : 'eventual'}`);
        return stored.get(nodeName) ?? [];
      },
    },
    ...options,
  });

const token = (pair: NodeKeyPair = ec, more: { nodeName?: string; header?: object; claims?: object } = {}) =>
  nodeToken(pair, { nodeName: 'n1', nowMs, clusterId: 'here', ...more });
const outcomeOf = async (text: string): Promise<string> => userOrReason(await scheme.authenticate(text, nowMs));
const userOrReason = (answer: Authentication): string =>
  answer.kind === 'authenticated' ? answer.user.username : answer.kind === 'refused' ? answer.reason : answer.kind;

describe('a node token', () => {
  it('authenticates the node of its key, with either kind of key', async () => {
    expect(await scheme.authenticate(token(), nowMs)).toEqual({
      kind: 'authenticated',
      user: {
        username: 'system:node:n1',
        groups: ['system:nodes', 'system:authenticated'],
        extra: { 'nodekeeper.dev/key-id': [ec.keyId] },
      },
    });
    expect(await outcomeOf(token(ed, { nodeName: 'n2' }))).toBe('system:node:n2');
  });

  it('has the format of a JWT library, including the key id', async () => {
    const iat = NOW_MS / 1_000;
    const made = await new SignJWT({})
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT', kid: await calculateJwkThumbprint(ec.publicKey) })
      .setIssuer('system:node:n1')
      .setSubject('system:node:n1')
      .setAudience('here')
      .setIssuedAt(iat)
      .setExpirationTime(iat + 300)
      .sign(ec.privateKey);
    expect(await outcomeOf(made)).toBe('system:node:n1');
  });

  it('is recognised by its format', () => {
    expect(scheme.recognises(token())).toBe(true);
    for (const text of ['', 'abc', 'a.b.c', `k3q9x7za.${'s'.repeat(43)}`, `${token()}.x`]) {
      expect(scheme.recognises(text), text).toBe(false);
    }
  });
});

describe('a forged node token', () => {
  const claims = (more: object = {}) => {
    const name = 'system:node:n1';
    return { iss: name, sub: name, aud: 'here', iat: NOW_MS / 1_000, exp: NOW_MS / 1_000 + 300, ...more };
  };
  const header = (more: object = {}) => ({ alg: 'ES256', typ: 'JWT', kid: ec.keyId, ...more });
  const hmac = (secret: string | Buffer) => (text: string) => createHmac('sha256', secret).update(text).digest();
  const pem = ec.publicKeyObject.export({ type: 'spki', format: 'pem' }) as string;
  const der = ec.publicKeyObject.export({ type: 'spki', format: 'der' }) as Buffer;
  const rsa = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  const zeros = 'A'.repeat(86);

  const forgeries: Record<string, () => string> = {
    'with no signature, algorithm none': () => assembled(header({ alg: 'none' }), claims(), () => ''),
    'with algorithm none and a signature': () => assembled(header({ alg: 'none' }), claims(), () => zeros),
    'signed with the public key (PEM) as a secret': () => assembled(header({ alg: 'HS256' }), claims(), hmac(pem)),
    'signed with the public key (DER) as a secret': () => assembled(header({ alg: 'HS256' }), claims(), hmac(der)),
    'signed with the public key as a secret, called ES256': () =>
      assembled(header(), claims(), (text) => hmac(pem)(text).toString('base64url').padEnd(86, 'A')),
    'signed by RSA': () =>
      assembled(header({ alg: 'RS256' }), claims(), (text) => sign('sha256', Buffer.from(text), rsa.privateKey)),
    'signed by another key under the right key id': () => assembled(header(), claims(), signedBy(other)),
    'signed by another key under its own key id': () => token(other),
    'that contains its own key': () =>
      assembled(header({ jwk: other.publicKey, kid: other.keyId }), claims(), signedBy(other)),
    'that contains the URL of its key': () =>
      assembled(header({ jku: 'https://evil.example/keys', kid: other.keyId }), claims(), signedBy(other)),
    "signed with another node's key": () => token(ed, { nodeName: 'n1' }),
    'of an EC key with algorithm EdDSA': () => assembled(header({ alg: 'EdDSA' }), claims(), signedBy(ec)),
    'with a key id that is a path': () => token(ec, { header: { kid: '../../node-keys#00/n2' } }),
    'with the key id __proto__': () => token(ec, { header: { kid: '__proto__' } }),
    'with a signature of zeros': () => assembled(header(), claims(), () => zeros),
    'with a signature in DER': () =>
      assembled(header(), claims(), (text) => sign('sha256', Buffer.from(text), ec.privateKey)),
    'for another cluster': () => token(ec, { claims: { aud: 'there' } }),
    'that has expired': () => token(ec, { claims: { iat: NOW_MS / 1_000 - 361, exp: NOW_MS / 1_000 - 61 } }),
    'that is not valid yet': () => token(ec, { claims: { iat: NOW_MS / 1_000 + 61, exp: NOW_MS / 1_000 + 361 } }),
    'that lives an hour': () => token(ec, { claims: { exp: NOW_MS / 1_000 + 3_600 } }),
    'of a node without an identity': () => token(ec, { nodeName: 'n3' }),
    'that is too long': () => token(ec, { claims: { padding: 'x'.repeat(4_096) } }),
    'with a changed payload': () => {
      const [head, , signature] = token().split('.');
      return `${head}.${base64url(claims({ sub: 'system:node:n2', iss: 'system:node:n2' }))}.${signature}`;
    },
    'with a list as header': () => assembled([], claims(), signedBy(ec)),
    'with a payload that is no JSON': () => `${base64url(header())}.${base64url('{')}.${zeros}`,
    'with padding in its parts': () => token().replace('.', '=.'),
    'with padding at its end': () => `${token()}=`,
    'with something before it': () => `=${token()}`,
    'with a line break': () => `${token()}\n`.replace('.', '.\n'),
  };

  it.each(Object.keys(forgeries))('%s is refused', async (what) => {
    const answer = await scheme.authenticate(forgeries[what]!(), nowMs);
    expect(answer.kind).toBe('refused');
    // Nor is it cached as valid.
    expect((await scheme.authenticate(forgeries[what]!(), nowMs)).kind).toBe('refused');
  });

  it('costs no read if its claims are refused', async () => {
    await outcomeOf(token(ec, { claims: { aud: 'there' } }));
    await outcomeOf(token(ec, { header: { kid: 'x' } }));
    expect(reads).toEqual([]);
  });
});

describe('a token for heartbeats', () => {
  const bound = (more: object = {}) => token(ec, { claims: { aud: 'here#beat', ...more } });

  it('is accepted only where heartbeats are served, and says what it is good for', async () => {
    expect(await outcomeOf(bound())).toBe('node token: for another audience');
    scheme = schemeOf({ acceptsBeatTokens: true });
    const extraOf = async (text: string) => {
      const answer = await scheme.authenticate(text, nowMs);
      return answer.kind === 'authenticated' ? answer.user.extra : answer;
    };
    const key = { 'nodekeeper.dev/key-id': [ec.keyId] };
    expect(await extraOf(bound())).toEqual({ ...key, 'nodekeeper.dev/beat-only': ['true'] });
    expect(await extraOf(bound({ body_sha256: 'h'.repeat(43) }))).toEqual({
      ...key,
      'nodekeeper.dev/beat-only': ['true'],
      'nodekeeper.dev/body-sha256': ['h'.repeat(43)],
    });
    expect(await extraOf(token())).toEqual(key);
  });

  it('pushes no other one out of the cache if it is bound to one request', async () => {
    scheme = schemeOf({ acceptsBeatTokens: true, rememberedMax: 1 });
    const [kept, once] = [bound(), bound({ body_sha256: 'h'.repeat(43) })];
    for (const text of [kept, once]) expect(await outcomeOf(text)).toBe('system:node:n1');
    // What is in the cache expires with another reason than what is verified anew.
    nowMs += 400_000;
    expect(await outcomeOf(kept)).toBe('node token: expired');
    stored.delete('n1');
    nowMs -= 400_000;
    nowMs += KEYS_LIVE_MS;
    expect(await outcomeOf(once)).toBe('node token: no such key');
  });
});

describe('a token of the probe', () => {
  const PROBE = 'system:nodekeeper:probe';
  const ofProbe = (pair = ed) => token(pair, { claims: { iss: PROBE, sub: PROBE } });
  const probeKeys = (throughMs: number, asked: boolean[] = []) => ({
    async probeKeys({ consistent }: { readonly consistent: boolean }) {
      asked.push(consistent);
      return [{ keyId: ed.keyId, publicKey: ed.publicKey, throughMs }];
    },
  });

  it('authenticates the probe, while its key is valid', async () => {
    scheme = schemeOf({ probeKeys: probeKeys(NOW_MS + 1) });
    expect(await scheme.authenticate(ofProbe(), nowMs)).toEqual({
      kind: 'authenticated',
      user: { username: PROBE, groups: ['nodekeeper:probes', 'system:authenticated'] },
    });
    const made = ofProbe();
    nowMs += 1;
    expect(await outcomeOf(made)).toBe(PROBE);
    nowMs += 1;
    expect(await outcomeOf(made)).toBe('node token: no such key');
    expect(await outcomeOf(ofProbe())).toBe('node token: no such key');
    expect(reads).toEqual([]);
  });

  it('with a key that has ended when it is first read is refused', async () => {
    const asked: boolean[] = [];
    scheme = schemeOf({ probeKeys: probeKeys(NOW_MS - 1, asked) });
    expect(await outcomeOf(ofProbe())).toBe('node token: no such key');
    expect(asked).toEqual([false]);
    expect(await outcomeOf(ofProbe(other))).toBe('node token: no such key');
    expect(asked).toEqual([false, true]);
  });

  it('is refused where there are no probes', async () => {
    expect(await outcomeOf(ofProbe())).toBe('node token: no such key');
    expect(reads).toEqual([]);
  });
});

it('a key is used with its own algorithm only', async () => {
  const reason = 'node token: the key is of another algorithm';
  expect(await outcomeOf(token(ec, { header: { alg: 'EdDSA' } }))).toBe(reason);
  expect(await outcomeOf(token(ed, { nodeName: 'n2', header: { alg: 'ES256' } }))).toBe(reason);
});

it('a token has at most 2,048 characters', async () => {
  const padded = (length: number) => {
    const base = token(ec, { claims: { padding: '' } }).length;
    for (let more = Math.floor((length - base) * 0.75) - 3; ; more += 1) {
      const made = token(ec, { claims: { padding: 'x'.repeat(more) } });
      if (made.length >= length) return made;
    }
  };
  const longest = padded(2_047);
  expect(longest.length).toBeLessThanOrEqual(2_048);
  expect(await outcomeOf(longest)).toBe('system:node:n1');
  expect(await outcomeOf(padded(2_049))).toBe('node token: too long');
});

describe('the caches of keys and tokens', () => {
  it('avoid reads of later requests', async () => {
    for (let beat = 0; beat < 5; beat += 1) {
      await outcomeOf(token());
      nowMs += 10_000;
    }
    expect(reads).toEqual(['n1 eventual']);
  });

  it('refuse a token that was valid before and has expired', async () => {
    const made = token();
    expect(await outcomeOf(made)).toBe('system:node:n1');
    nowMs += 359_999;
    expect(await outcomeOf(made)).toBe('system:node:n1');
    nowMs += 1;
    expect(await outcomeOf(made)).toBe('node token: expired');
    nowMs = NOW_MS - 60_000;
    expect(await outcomeOf(made)).toBe('system:node:n1');
    nowMs -= 1;
    expect(await outcomeOf(made)).toBe('node token: expired');
  });

  it('accept a revoked key for keysLiveMs and no longer', async () => {
    const made = token();
    await outcomeOf(made);
    stored.delete('n1');
    nowMs += KEYS_LIVE_MS - 1;
    expect(await outcomeOf(made)).toBe('system:node:n1');
    expect(await outcomeOf(token())).toBe('system:node:n1');
    nowMs += 1;
    expect(await outcomeOf(made)).toBe('node token: no such key');
    expect(await outcomeOf(token())).toBe('node token: no such key');
  });

  it('are read again after the clock was set back: no revoked key stays valid, and no new key is missing', async () => {
    nowMs = NOW_MS + 3_600_000;
    expect(await outcomeOf(token())).toBe('system:node:n1');
    stored.delete('n1');
    nowMs = NOW_MS;
    expect(await outcomeOf(token())).toBe('node token: no such key');
    stored.set('n1', stores(ec));
    nowMs -= 5_000;
    expect(await outcomeOf(token())).toBe('system:node:n1');
  });

  it('find a new key at once, or five seconds after a failed lookup', async () => {
    await outcomeOf(token());
    stored.set('n1', stores(ec, other));
    expect(await outcomeOf(token(other))).toBe('system:node:n1');
    expect(reads).toEqual(['n1 eventual', 'n1 consistent']);
    const late = nodeKeyPair();
    expect(await outcomeOf(token(late))).toBe('node token: no such key');
    stored.set('n1', stores(ec, late));
    nowMs += 4_999;
    expect(await outcomeOf(token(late))).toBe('node token: no such key');
    nowMs += 1;
    expect(await outcomeOf(token(late))).toBe('system:node:n1');
  });

  it('read strongly consistent before a name is refused, and then not for five seconds', async () => {
    for (let attempt = 0; attempt < 3; attempt += 1) await outcomeOf(token(ec, { nodeName: 'n3' }));
    expect(reads).toEqual(['n3 eventual', 'n3 consistent']);
    nowMs += 5_000;
    await outcomeOf(token(ec, { nodeName: 'n3' }));
    expect(reads).toHaveLength(3);
  });

  it('keep the keys of a node during a flood of tokens for unknown names', async () => {
    scheme = schemeOf({ rememberedMax: 2 });
    await outcomeOf(token());
    for (const nodeName of ['x1', 'x2', 'x3']) await outcomeOf(token(ec, { nodeName }));
    await outcomeOf(token());
    expect(reads.filter((read) => read.startsWith('n1 '))).toHaveLength(1);
    expect(reads).toHaveLength(7);
  });

  it('are bounded', async () => {
    scheme = schemeOf({ rememberedMax: 1 });
    for (let round = 0; round < 2; round += 1) {
      await outcomeOf(token());
      await outcomeOf(token(ed, { nodeName: 'n2' }));
    }
    expect(reads).toEqual(['n1 eventual', 'n2 eventual', 'n1 eventual', 'n2 eventual']);
  });
});

describe('a public key', () => {
  it('has the thumbprint that a JWT library computes', async () => {
    for (const pair of [ec, ed]) expect(pair.keyId).toBe(await calculateJwkThumbprint(pair.publicKey));
  });

  it('must lie on its curve', () => {
    const { publicKey } = ec;
    expect(readPublicKey({ ...publicKey, y: publicKey.x }).kind).toBe('invalid');
    expect(readPublicKey({ kty: 'EC', crv: 'P-256', x: 'A'.repeat(43), y: 'A'.repeat(43) }).kind).toBe('invalid');
  });

  it('has one encoding', () => {
    // The last of the 43 characters has two unused bits.
    const { x } = ed.publicKey;
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const other = x.slice(0, 42) + alphabet[alphabet.indexOf(x[42]!) ^ 1];
    expect(readPublicKey({ ...ed.publicKey, x: other }).kind).toBe('invalid');
  });
});
