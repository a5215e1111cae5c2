// npm run plugin: builds the program and assembles a marketplace with the plugin, which is what a release publishes.
import { bundle } from './bundle.js';
import { assembleMarketplace, MARKETPLACE } from './marketplace.js';

await bundle();
assembleMarketplace(MARKETPLACE);
process.stdout.write(`${MARKETPLACE}\n`);
