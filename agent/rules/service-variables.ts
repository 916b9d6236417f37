/**
 * The variables with which a client in a pod finds the API. Source: Kubernetes, "Accessing the Kubernetes API from a
 * Pod"; client-go rest.InClusterConfig. Other services have none: this node does not route to their addresses.
 */
import type { Variables } from './env.ts';

const HTTPS_PORT = '443';

/** @param endpoint URL of the API */
export function apiServiceVariables(endpoint: string): Variables {
  if (!URL.canParse(endpoint)) return {};
  const { hostname, port } = new URL(endpoint);
  return {
    KUBERNETES_SERVICE_HOST: hostname,
    KUBERNETES_SERVICE_PORT: port || HTTPS_PORT,
    KUBERNETES_SERVICE_PORT_HTTPS: port || HTTPS_PORT,
  };
}
