int tz_x(void);int tz_x(void){return 1;}
