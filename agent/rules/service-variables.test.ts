import { expect, it } from 'vitest';
import { apiServiceVariables } from './service-variables.ts';

it('a pod finds the API by the host and the port of the endpoint', () => {
  const of = (host: string, port: string) => ({
    KUBERNETES_SERVICE_HOST: host,
    KUBERNETES_SERVICE_PORT: port,
    KUBERNETES_SERVICE_PORT_HTTPS: port,
  });
  expect(apiServiceVariables('https://api.example')).toEqual(of('api.example', '443'));
  expect(apiServiceVariables('https://api.example:6443/x')).toEqual(of('api.example', '6443'));
  expect(apiServiceVariables('api.example')).toEqual({});
});
