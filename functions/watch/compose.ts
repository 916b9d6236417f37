import { staticTokenAuthenticator } from '../../shared/adapters/tokens/static-tokens.ts';
import { watchTickets } from '../../shared/adapters/tokens/watch-tickets.ts';
import { serveWatch } from '../../shared/app/api/serve-watch.ts';
import { loadConfig, watchConfig } from '../../shared/config/environment.ts';
import type { Environment } from '../controllers.ts';
import { composeServing } from '../serving.ts';

export function composeWatch(environment: Environment) {
  const config = loadConfig(watchConfig, environment);
  return serveWatch({
    ...composeServing(environment, config),
    authenticator: staticTokenAuthenticator(config.staticTokens),
    tickets: watchTickets(config.ticketSecret),
  });
}
