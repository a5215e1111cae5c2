import { type AddressInfo, createServer, type Socket } from 'node:net';

/** Works beside someone on loopback who takes connections and says nothing. */
export async function besideSilence(work: (url: string) => Promise<void>): Promise<void> {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => {
    socket.on('error', () => {});
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(silent.address() as AddressInfo).port}`);
  } finally {
    for (const socket of sockets) socket.destroy();
    silent.close();
  }
}
