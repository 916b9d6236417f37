import { describe, expect, it } from 'vitest';
import { bytesOfMessage, exitMessage, faultMessage, faultOf, messageOf, terminalSizeOf } from './channels.ts';
import { lineMessageOf } from './session-request.ts';

const bytes = (text: string) => new TextEncoder().encode(text);

describe('messages of a session', () => {
  it('have their channel first', () => {
    expect(bytesOfMessage({ channel: 1, data: bytes('a') })).toEqual(Uint8Array.of(1, 97));
    expect(messageOf(Uint8Array.of(255, 0))).toEqual({ channel: 255, data: Uint8Array.of(0) });
    expect(messageOf(new Uint8Array())).toBeUndefined();
  });

  it('end with a Status that has the exit code', () => {
    const { data } = exitMessage(3);
    expect(JSON.parse(new TextDecoder().decode(data))).toEqual({
      metadata: {},
      status: 'Failure',
      reason: 'NonZeroExitCode',
      message: 'command terminated with non-zero exit code: exit status 3',
      details: { causes: [{ reason: 'ExitCode', message: '3' }] },
    });
    expect(faultOf(exitMessage(0).data)).toBeUndefined();
    expect(faultOf(faultMessage('no such container').data)).toBe('no such container');
    expect(faultOf(bytes('{'))).toBe('the node reported its end in an unknown form');
  });

  it.each([
    ['{"Width":80,"Height":24}', { columns: 80, rows: 24 }],
    ['{"Width":80}', undefined],
    ['{"Width":1e9,"Height":24}', undefined],
    ['{"Width":"80;rm","Height":24}', undefined],
    ['null', undefined],
    ['{', undefined],
  ])('the size of a terminal in %s', (text, size) => {
    expect(terminalSizeOf(bytes(text))).toEqual(size);
  });
});

describe('a message on a line', () => {
  const of = (purpose: unknown) => {
    const message = lineMessageOf(JSON.stringify({ session: { id: 'i', podUid: 'u', purpose } }));
    return message !== undefined && 'session' in message ? message.session.purpose : undefined;
  };

  it('says that a session has ended', () => {
    expect(lineMessageOf('{"ended":"i"}')).toEqual({ ended: 'i' });
    expect(lineMessageOf('{"ended":1}')).toBeUndefined();
  });

  it('asks for a session, with what it is for', () => {
    const exec = { kind: 'exec', container: 'c', command: ['sh', '-c', 'x'], stdin: true, tty: false };
    expect(of(exec)).toEqual(exec);
    expect(of({ kind: 'attach', container: 'c', stdin: false })).toEqual({
      kind: 'attach',
      container: 'c',
      stdin: false,
    });
    expect(of({ kind: 'forward', port: 80 })).toEqual({ kind: 'forward', port: 80 });
  });

  it.each([
    { kind: 'forward', port: 0 },
    { kind: 'forward', port: '80' },
    { kind: 'exec', container: 'c', command: 'sh' },
    { kind: 'exec', container: 'c', command: [1] },
    { kind: 'exec', command: ['sh'] },
    { kind: 'later', container: 'c' },
    'exec',
  ])('that is malformed is ignored: %j', (purpose) => {
    expect(of(purpose)).toBeUndefined();
    expect(lineMessageOf('{')).toBeUndefined();
    expect(lineMessageOf('null')).toBeUndefined();
  });
});
