import { EventEmitter } from 'node:events';
import type { Http2ServerResponse } from 'node:http2';
import { expect, it, onTestFinished, vi } from 'vitest';
import { unsentAnswers } from './unsent-answers.ts';

const MEBIBYTE = 1024 * 1024;

function answers() {
  vi.useFakeTimers();
  const onCut = vi.fn();
  const unsent = unsentAnswers(onCut);
  onTestFinished(() => {
    unsent.stop();
    vi.useRealTimers();
  });
  const hold = (address: string, bytes: number) => {
    const response = Object.assign(new EventEmitter(), {
      stream: { close() {}, destroy: () => void response.emit('close') },
    });
    return { response, isHeld: unsent.hold(response as unknown as Http2ServerResponse, address, bytes) };
  };
  return { hold, onCut };
}

it('breaks off an answer that is read slower than 4 KB/s after 30 s, and then no more', () => {
  const { hold, onCut } = answers();
  hold('192.0.2.1', 6_400_000);
  vi.advanceTimersByTime(1_625_000);
  expect(onCut).not.toHaveBeenCalled();
  vi.advanceTimersByTime(600_000);
  expect(onCut).toHaveBeenCalledOnce();
});

it('holds a quarter of all bytes for one address, any single answer, and others once it was read', () => {
  const { hold } = answers();
  const { response, isHeld } = hold('192.0.2.1', 300 * MEBIBYTE);
  expect(isHeld).toBe(true);
  expect(hold('192.0.2.1', 8_192).isHeld).toBe(false);
  // That of a heartbeat.
  expect(hold('192.0.2.1', 900).isHeld).toBe(true);
  for (const last of [2, 3, 4]) expect(hold(`192.0.2.${last}`, 64 * MEBIBYTE).isHeld).toBe(true);
  expect(hold('192.0.2.5', 8_192).isHeld).toBe(false);
  response.emit('close');
  expect(hold('192.0.2.5', 8_192).isHeld).toBe(true);
});
