import { describe, expect, it } from 'vitest';
import { preshutdownOrder } from './preshutdown-order.ts';

describe('the place of the agent in a shutdown of Windows', () => {
  it('is before the services that it depends on, in any case of their names', () => {
    expect(preshutdownOrder('agent', ['Tcpip', 'dns'], ['a', 'DNS', 'b'])).toEqual(['a', 'agent', 'DNS', 'b', 'Tcpip']);
    expect(preshutdownOrder('agent', ['dns'], ['dns', 'AGENT', 'b'])).toEqual(['agent', 'dns', 'b']);
    expect(preshutdownOrder('agent', ['dns', 'tcpip'], [])).toEqual(['agent', 'dns', 'tcpip']);
    expect(preshutdownOrder('agent', [], ['a', 'agent'])).toEqual(['a', 'agent']);
  });
});
