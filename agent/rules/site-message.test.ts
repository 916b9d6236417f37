import { expect, it } from 'vitest';
import { hubMessageOf, machineMessageOf, messageText } from './site-message.ts';

it('reads what it wrote', () => {
  const beat = { kind: 'beat', node: 'edge-1', port: 7_445 } as const;
  const goodbye = { kind: 'goodbye', forSeconds: 60 } as const;
  for (const message of [beat, goodbye]) expect(machineMessageOf(messageText(message))).toEqual(message);
  const probe = { kind: 'probe', node: 'edge-1', address: 'fe80::1', port: 7_445 } as const;
  for (const message of [
    probe,
    { kind: 'seen' },
    { kind: 'confirm', node: 'a' },
    { kind: 'release', node: 'a.b' },
  ] as const) {
    expect(hubMessageOf(messageText(message))).toEqual(message);
  }
});

it.each([
  '',
  'null',
  '[]',
  '{"kind":"beat"}',
  '{"kind":"beat","node":"Edge","port":1}',
  '{"kind":"beat","node":"edge","port":65536}',
  '{"kind":"beat","node":"edge","port":"1"}',
  '{"kind":"goodbye","forSeconds":0}',
  '{"kind":"goodbye","forSeconds":1e9}',
  '{"kind":"probe","node":"edge","address":"edge.example","port":1}',
  '{"kind":"probe","node":"edge","address":"10.0.0.1","port":0}',
  '{"kind":"probe","node":"","address":"10.0.0.1","port":1}',
  '{"kind":"release"}',
])('does not read %s', (line) => {
  expect(machineMessageOf(line)).toBeUndefined();
  expect(hubMessageOf(line)).toBeUndefined();
});

it.each([1, 65_535])('a machine may answer at port %i', (port) => {
  expect(machineMessageOf(messageText({ kind: 'beat', node: 'edge', port }))).toMatchObject({ port });
});
