import { showAlbums } from "./albums.js";
import { askWhoBuys } from "./customer.js";
import { openOffice } from "./staff.js";

showAlbums();
askWhoBuys();
openOffice();
